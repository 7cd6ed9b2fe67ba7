import { type LogLine, startLarder } from "../support/larder_process.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { OwnCertificate } from "../support/tls_front.ts";

testUnless(programsMissing("openssl"), "keys: one that others can read is warned of", async () => {
  using certificate = new OwnCertificate();
  const flags = {
    "cache-upstream-url": "http://127.0.0.1:1",
    "server-tls-cert": certificate.caFile,
    "server-tls-key": certificate.keyFile,
  };
  Deno.chmodSync(certificate.keyFile, 0o644);
  await using larder = await startLarder(flags);
  const isOf = (path: string) => (line: LogLine) => line["path"] === path;
  const opened = "key file is open to others";
  await larder.logged(opened, isOf(certificate.keyFile));

  const signing = `${larder.storage}/secret-key`;
  Deno.chmodSync(signing, 0o604);
  await using second = await startLarder({ ...flags, "cache-secret-key-path": signing });
  await second.logged(opened, isOf(signing));
});
