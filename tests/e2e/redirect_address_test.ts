import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { HttpProxy } from "../support/http_proxy.ts";
import { LONG_TIMEOUTS, startLarder } from "../support/larder_process.ts";
import { makeStoreObject } from "../support/store_object.ts";

const object = makeStoreObject({ name: "thing-1.0" });
const HASH = object.storePathHash;
const PATHS = [`/${HASH}.narinfo`, `/${HASH}.ls`, `/log/${HASH}-thing-1.0.drv`];

/** An address for documentation: nobody is there, and the proxy answers for it. */
const PUBLIC = "http://203.0.113.7";

/** How this machine, and networks that only it can reach, may be written. */
const HOSTS = [
  ...["127.0.0.1", "localhost", "a.localhost", "0.0.0.0", "2130706433", "0x7f.1", "127.1"],
  ...["[::1]", "[::]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"],
  ...["169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"],
  ...["[fe80::1]", "[fc00::1]", "[fd00::1]", "[::ffff:10.0.0.1]"],
];

Deno.test("redirect: a public upstream does not lead to this machine or its networks", async () => {
  await using inside = await fakeUpstream({ objects: [object], stored: true });
  await using upstream = await fakeUpstream({ stored: true });
  await using proxy = new HttpProxy(upstream.port);
  await using larder = await startLarder({
    "cache-upstream-url": PUBLIC,
    "cache-upstream-public-key": inside.publicKey,
    "cache-negative-ttl": "0s",
    ...LONG_TIMEOUTS,
  }, { HTTP_PROXY: proxy.url, NO_PROXY: "127.0.0.1,localhost" });
  for (const host of HOSTS) {
    upstream.onRequest = ({ path }) => {
      if (path === "/nix-cache-info") return undefined;
      const headers = { location: `http://${host}:${inside.port}${path}`, "content-length": "0" };
      return new Response(null, { status: 302, headers });
    };
    for (const path of PATHS) {
      const answer = await fetch(larder.url + path);
      await answer.body?.cancel();
      assert.equal(answer.status, 404, `${host}${path}`);
    }
  }
  assert.deepEqual(inside.requests.map(({ path }) => path), []);
  const elsewhere = proxy.requestLines.filter((line) => !line.startsWith(`GET ${PUBLIC}/`));
  assert.deepEqual(elsewhere.filter((line) => line.startsWith("GET ")), []);
  assert.equal(upstream.count(/^\/(?!nix-cache-info)/), HOSTS.length * PATHS.length);
});
