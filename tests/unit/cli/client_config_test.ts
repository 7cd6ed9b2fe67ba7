import assert from "node:assert/strict";
import type { LocalNetwork } from "../../../src/app/reachable_url.ts";
import { fakeUpstream } from "../../support/fake_upstream.ts";
import { runLarder } from "../../support/run_larder.ts";
import { TestCache } from "../../support/test_cache.ts";

const NETWORK: LocalNetwork = {
  hostname: () => "nas",
  addresses: () => ["127.0.0.1"],
  text: (path) => Promise.resolve(path === "/etc/ufw/ufw.conf" ? "ENABLED=yes" : undefined),
  resolve: (name) => Promise.resolve(name === "nas" ? ["127.0.0.1"] : []),
};

Deno.test("larder client-config: the lines name the machine as others reach it", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const { port } = new URL(server.url);

  const ran = await runLarder(["client-config", "--server", server.url], { network: NETWORK });

  const key = (await (await fetch(`${server.url}/pubkey`)).text()).trim();
  assert.equal(ran.status, 0);
  assert.equal(
    ran.out,
    `extra-substituters = http://nas:${port}\nextra-trusted-public-keys = ${key}\n` +
      "narinfo-cache-negative-ttl = 60\nconnect-timeout = 3\n",
  );
  assert.match(ran.err, new RegExp(`a firewall is up.*sudo ufw allow ${port}/tcp`));
});

Deno.test("larder client-config: it says where nothing answers at that address", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const network = {
    ...NETWORK,
    resolve: () => Promise.resolve([]),
    addresses: () => ["127.0.0.9"],
  };

  const ran = await runLarder(["client-config", "--server", server.url], { network });

  assert.match(ran.out, /^extra-substituters = http:\/\/127\.0\.0\.9:/);
  assert.match(ran.err, /nothing answers at .*--server-addr/);
});

Deno.test("larder client-config: it prints the address and the keys of the page, in a container too", async () => {
  await using upstream = await fakeUpstream({});
  const reachableUrl = () => Promise.resolve("http://nas:7501");
  await using cache = await TestCache.open({
    upstreams: [upstream],
    secretKey: undefined,
    reachableUrl,
  });
  await using server = cache.listen();
  const words = ["client-config", "--server", server.url];
  // Its own environment names another.
  const { out } = await runLarder(words, { network: NETWORK, env: { CACHE_HOSTNAME: "other" } });

  assert.match(out, /^extra-substituters = http:\/\/nas:7501\n/);
  assert.ok(out.includes(`\nextra-trusted-public-keys = ${upstream.publicKey}\n`), out);
});

Deno.test("larder client-config: a strange answer gets no line of its own into the lines", async () => {
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () =>
      Response.json({
        url: "http://evil\nsubstituters = http://evil",
        public_keys: ["a:b\nc", "good-1:AAAA"],
      }),
  );
  const words = ["client-config", "--server", `http://127.0.0.1:${server.addr.port}`];

  const { out } = await runLarder(words, { network: NETWORK });

  assert.match(
    out,
    /^extra-substituters = http:\/\/nas:\d+\nextra-trusted-public-keys = good-1:AAAA\n/,
  );
  assert.doesNotMatch(out, /evil/);
});

Deno.test("larder client-config: it has the forms of the page", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const words = ["client-config", "--form", "nixos", "--server", server.url];

  const { out } = await runLarder(words, { network: NETWORK });

  assert.match(out, /^nix\.settings = \{\n {2}extra-substituters = \[ "http:\/\/nas:/);
});

Deno.test("larder client-config: in a container it names --cache-hostname, or says what to put in", async () => {
  await using cache = await TestCache.open({ upstreams: [] });
  await using server = cache.listen();
  const network = {
    ...NETWORK,
    hostname: () => "4f66ad9a0b2e",
    text: (path: string) => Promise.resolve(path === "/run/.containerenv" ? "" : undefined),
  };
  const words = ["client-config", "--server", server.url];

  const named = await runLarder(words, { network, env: { CACHE_HOSTNAME: "cache.example" } });
  const unnamed = await runLarder(words, { network });

  assert.match(named.out, /^extra-substituters = http:\/\/cache\.example:/);
  assert.match(unnamed.out, /^extra-substituters = http:\/\/ADDRESS-OF-THIS-CACHE:\d/);
  assert.match(unnamed.err, /put the address that clients reach .* or set --cache-hostname/);
});
