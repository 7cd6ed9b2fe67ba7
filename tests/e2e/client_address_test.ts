import assert from "node:assert/strict";
import { startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { OwnCertificate } from "../support/tls_front.ts";

const excuse = programsMissing("curl", "openssl") ||
  (Deno.build.os === "linux" ? "" : "only Linux has all of 127.0.0.0/8");

testUnless(excuse, "log: a line names the client's address, also behind TLS", async () => {
  using certificate = new OwnCertificate();
  const tls = { "server-tls-cert": certificate.caFile, "server-tls-key": certificate.keyFile };
  for (const flags of [{}, tls]) {
    await using larder = await startLarder({
      "cache-upstream-url": "http://127.0.0.1:1",
      "log-level": "debug",
      ...flags,
    });
    for (const address of ["127.0.0.1", "127.0.0.3", "127.0.0.4"]) {
      const path = `${larder.url}/healthz?${address}`;
      const args = ["--silent", "--insecure", "--noproxy", "*", "--interface", address, path];
      const { success } = await new Deno.Command("curl", { args, stdout: "null" }).output();
      assert.ok(success);
      await larder.logged("request", ({ client }) => client === address);
    }
  }
});
