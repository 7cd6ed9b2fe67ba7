import assert from "node:assert/strict";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { NginxFront } from "../support/nginx_front.ts";
import { programMissing, testUnless } from "../support/program.ts";
import { redisMissing, RedisServer } from "../support/redis_server.ts";
import { Replicas } from "../support/replicas.ts";
import { makeStoreObject } from "../support/store_object.ts";

const CLIENTS = 16;
const PATHS = 200;
const NAR_BYTES = 20_000;

testUnless(
  redisMissing || programMissing("nginx", "nginx-light"),
  `replicas: ${CLIENTS} clients of three behind nginx cost one upstream request for each path`,
  async () => {
    const objects = Array.from({ length: PATHS }, (_, seed) => (
      makeStoreObject({ name: "balanced", size: NAR_BYTES, seed })
    ));
    await using upstream = await fakeUpstream({ objects, stored: true });
    const right = await Promise.all(objects.map((object) => upstream.narFileOf(object)));
    await using redis = await RedisServer.open();
    await using replicas = await Replicas.start({ upstream, redis, count: 3 });
    await using front = await NginxFront.open(replicas.larders.map(({ port }) => port));
    const get = (path: string) => fetch(`http://127.0.0.1:${front.port}${path}`);

    await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
      for (let at = 0; at < PATHS; at++) {
        // Half of the clients begin at the other end.
        const index = client % 2 === 0 ? at : PATHS - 1 - at;
        const narinfo = await get(`/${objects[index]?.storePathHash}.narinfo`);
        const text = await narinfo.text();
        assert.equal(narinfo.status, 200, text);
        const nar = await get(`/${/^URL: (.*)$/m.exec(text)?.[1]}`);
        assert.equal(nar.status, 200);
        assert.deepEqual(await nar.bytes(), right[index]?.bytes);
      }
    }));

    assert.equal(upstream.count(/\.narinfo$/), PATHS, "requests for narinfos");
    assert.equal(upstream.count(/^\/nar\//), PATHS, "requests for NARs");
  },
);
