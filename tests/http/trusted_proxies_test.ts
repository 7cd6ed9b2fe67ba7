import assert from "node:assert/strict";
import { TrustedProxies } from "../../src/http/proxy/trusted_proxies.ts";
import { rawRequest, requestText } from "../support/raw_http.ts";
import { TestCache } from "../support/test_cache.ts";

const LOOPBACK = { address: "127.0.0.0", prefix: 8, family: "ipv4" } as const;

Deno.test("trusted proxies: log, refusals and failures have the client's address", async () => {
  const tokens = [{ name: "nix", role: "read", secret: "sesame" }] as const;
  await using cache = await TestCache.open({ upstreams: [], tokens });
  await using server = cache.listen({ proxies: new TrustedProxies([LOOPBACK]) });
  const get = (path: string, client: string, token: string) =>
    rawRequest(
      server.port,
      requestText("GET", path, {
        "X-Forwarded-For": `198.51.100.1, ${client}`,
        "Authorization": `Bearer ${token}`,
      }),
    );
  await get("/pubkey", "192.0.2.7", "sesame");
  // Behind one proxy: eleven failures of one address would be slowed.
  for (let count = 0; count < 22; count++) {
    assert.equal((await get("/pubkey", `192.0.2.${count % 5}`, "guess")).status, 401);
  }
  const clients = (msg: string) =>
    cache.log.filter((line) => line.msg === msg).map(({ client }) => client);
  assert.equal(clients("request")[0], "192.0.2.7");
  assert.deepEqual(clients("request refused").slice(0, 3), ["192.0.2.0", "192.0.2.1", "192.0.2.2"]);
});

Deno.test("trusted proxies: a client that says it is this machine evicts nothing", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  for (const proxies of [new TrustedProxies([LOOPBACK]), undefined]) {
    await using server = cache.listen({ proxies });
    for (const field of ["X-Forwarded-For", "Forwarded"]) {
      const text = requestText("POST", "/gc?target=0", { [field]: "for=127.0.0.1" });
      assert.equal((await rawRequest(server.port, text)).status, 403);
    }
  }
});
