import assert from "node:assert/strict";
import { type FakeUpstream, fakeUpstream } from "../support/fake_upstream.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { programsMissing, testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { assertSameBytes } from "../support/same_bytes.ts";
import { makeStoreObject, type StoreObject } from "../support/store_object.ts";

const CLIENTS = 16;
const PATHS = 200;
const NAR_BYTES = 20_000;

testUnless(
  redisMissing || programsMissing("nginx"),
  `replicas: ${CLIENTS} clients of two, then three, cost one upstream request for each path`,
  async () => {
    const objects = Array.from({ length: 2 * PATHS }, (_, seed) => (
      makeStoreObject({ name: "balanced", size: NAR_BYTES, seed })
    ));
    await using upstream = await fakeUpstream({ objects, stored: true });
    await using redis = await RedisServer.open();
    await using replicas = await Replicas.start({ upstream, redis, count: 2 });

    await crowd(replicas, upstream, objects.slice(0, PATHS));
    await replicas.add();
    await crowd(replicas, upstream, objects.slice(PATHS));

    assert.equal(upstream.count(/\.narinfo$/), 2 * PATHS, "requests for narinfos");
    assert.equal(upstream.count(/^\/nar\//), 2 * PATHS, "requests for NARs");
  },
);

/** Clients behind nginx, of which half begin at the other end. Fails unless each gets all bytes. */
async function crowd(
  { larders }: Replicas,
  upstream: FakeUpstream,
  objects: readonly StoreObject[],
): Promise<void> {
  const right = await Promise.all(objects.map((object) => upstream.narFileOf(object)));
  await using front = await NginxFront.open(larders.map(({ port }) => port));
  const get = (path: string) => fetch(`http://127.0.0.1:${front.port}${path}`);
  await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
    for (const at of objects.keys()) {
      const index = client % 2 === 0 ? at : objects.length - 1 - at;
      const narinfo = await get(`/${objects[index]?.storePathHash}.narinfo`);
      const text = await narinfo.text();
      assert.equal(narinfo.status, 200, text);
      const nar = await get(`/${/^URL: (.*)$/m.exec(text)?.[1]}`);
      assert.equal(nar.status, 200);
      assertSameBytes(await nar.bytes(), right[index]?.bytes ?? new Uint8Array(0));
    }
  }));
}
