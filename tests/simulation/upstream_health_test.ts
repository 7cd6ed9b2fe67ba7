import assert from "node:assert/strict";
import { makeStoreObject } from "../support/store_object.ts";
import { after, never, type Scene, sceneTest, status, text } from "./scene.ts";

const objects = Array.from({ length: 8 }, (_, seed) => makeStoreObject({ name: "many", seed }));
const absent = makeStoreObject({ name: "absent" });
const PATHS = objects.map(({ storePathHash }) => `/${storePathHash}.narinfo`);
const [FIRST = ""] = PATHS;
const LOG_PATH = `/log/${"0".repeat(32)}-thing.drv`;
const ABSENT_PATH = `/${absent.storePathHash}.narinfo`;
const NARINFO = /\.narinfo$/;
const DIAL_MS = 3_000;
const IDLE_MS = 30_000;
/** With every upstream off, a request is 404 within this. */
const SOON_MS = 1_000;
/** Silent in every kind of request. */
const MUTE = { nar: never, narinfo: never, document: never } as const;

sceneTest(
  "health: with every upstream off the first request is 404 within a second",
  { objects, upstreams: [{ state: "refused" }, { state: "refused" }] },
  async (scene) => {
    for (const path of [FIRST, LOG_PATH, PATHS[1] ?? ""]) {
      const { status, headMs } = await scene.get(path);
      assert.equal(status, 404);
      assert.ok(headMs < SOON_MS, `${headMs} ms`);
    }
    assert.equal((await scene.get("/nix-cache-info")).status, 200);
  },
);

sceneTest(
  "health: an upstream silent from the start is known before a client asks",
  { objects, upstreams: [MUTE] },
  async (scene) => {
    await untilLogged(scene, "upstream is down");
    for (const path of PATHS) {
      const { status, headMs } = await scene.get(path);
      assert.deepEqual([status, headMs], [404, 0]);
    }
    assert.deepEqual(scene.counts(NARINFO), [0]);
  },
);

sceneTest(
  "health: a silent upstream costs nothing after its first failures",
  { objects, upstreams: [{ ...MUTE, objects: [] }, {}] },
  async (scene) => {
    for (const path of PATHS.slice(0, 3)) assert.equal((await scene.get(path)).status, 200);
    await untilLogged(scene, "upstream is down");
    for (const path of PATHS.slice(3)) {
      const { status, headMs } = await scene.get(path);
      assert.deepEqual([status, headMs], [200, 0]);
    }
    const answers = [await scene.get(ABSENT_PATH), await scene.get(ABSENT_PATH)];
    assert.deepEqual(answers.map(({ status, headMs }) => [status, headMs]), [[404, 0], [404, 0]]);
    // All that are up said 404: that is remembered.
    assert.equal(answers[1]?.headers.get("x-cache"), "HIT");
    assert.equal(scene.logged("upstream is down").length, 1);
  },
);

sceneTest(
  "health: hits of another upstream do not hide that one is silent",
  { objects, upstreams: [{}, { objects: [], narinfo: never }], negativeTtlMs: 0 },
  async (scene) => {
    for (const path of PATHS) {
      await scene.get(path);
      await scene.get(ABSENT_PATH);
    }
    assert.equal(scene.logged("upstream is down").length, 1);
  },
);

sceneTest(
  "health: an upstream is up as soon as it answers anything",
  { objects, upstreams: [{ document: status(500) }], negativeTtlMs: 0 },
  async (scene) => {
    scene.behave(0, { state: "refused" });
    for (const path of PATHS.slice(0, 3)) assert.equal((await scene.get(path)).status, 404);
    await untilLogged(scene, "upstream is down");
    scene.behave(0, { document: status(500) });
    assert.equal((await scene.get(FIRST)).status, 200, "the first request after its return");
  },
);

sceneTest(
  "health: an upstream silent with NARs alone is down, and comes back",
  { objects, upstreams: [{}] },
  async (scene) => {
    const paths: string[] = [];
    for (const object of objects) paths.push(await scene.narPath(object));
    scene.behave(0, MUTE);
    for (const path of paths.slice(0, 3)) assert.equal((await scene.get(path)).status, 404);
    for (const path of paths) {
      const { status, headMs } = await scene.get(path);
      assert.equal(status, 404);
      assert.ok(headMs < SOON_MS, `${headMs} ms`);
    }
    scene.behave(0);
    await untilLogged(scene, "upstream is up again");
    for (const path of paths) assert.equal((await scene.get(path)).status, 200);
  },
);

sceneTest(
  "unproven: with a black hole alone an unknown path is soon 404",
  { objects, upstreams: [{ state: "silent" }] },
  async (scene) => {
    for (const path of [FIRST, ...PATHS]) {
      const { status, headers, headMs } = await scene.get(path);
      // Not remembered.
      assert.deepEqual([status, headers.get("x-cache")], [404, "MISS"]);
      assert.ok(headMs < SOON_MS, `${headMs} ms`);
    }
  },
);

const SLOW_MS = 1_200;

sceneTest(
  "unproven: a slow upstream is found by the first request",
  { objects, upstreams: [{ narinfo: after(SLOW_MS), document: after(SLOW_MS) }], isUnprobed: true },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs], [200, SLOW_MS]);
    assert.equal((await scene.get(FIRST)).headers.get("x-cache"), "HIT");
    assert.deepEqual(scene.counts(NARINFO), [1]);
  },
);

sceneTest(
  "unproven: after a timeout a slow upstream is found by the next request",
  { objects, upstreams: [{}] },
  async (scene) => {
    assert.equal((await scene.get(FIRST)).status, 200);
    scene.behave(0, { narinfo: never });
    assert.equal((await scene.get(PATHS[1] ?? "")).status, 404);
    scene.behave(0, { narinfo: after(SLOW_MS) });
    const { status, headMs } = await scene.get(PATHS[2] ?? "");
    assert.deepEqual([status, headMs], [200, SLOW_MS]);
  },
);

sceneTest(
  "unproven: a path that a slow upstream lacks is remembered as absent",
  { objects, upstreams: [{ narinfo: after(SLOW_MS) }] },
  async (scene) => {
    for (const [source, waitedMs] of [["MISS", SLOW_MS], ["HIT", 0]] as const) {
      const { status, headers, headMs } = await scene.get(ABSENT_PATH);
      assert.deepEqual([status, headers.get("x-cache"), headMs], [404, source, waitedMs]);
    }
  },
);

sceneTest(
  "unproven: a slow upstream is found beside a black hole that is preferred",
  { objects, upstreams: [{ state: "silent" }, { narinfo: after(SLOW_MS) }] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs], [200, SLOW_MS]);
  },
);

sceneTest(
  "unproven: a preferred mute upstream holds up the others for 300 ms at most",
  { objects, upstreams: [MUTE, {}] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.equal(status, 200);
    assert.ok(headMs <= 300, `${headMs} ms`);
  },
);

sceneTest(
  "unproven: one that accepts and is silent costs 3 idle timeouts, and returns",
  { objects, upstreams: [{ narinfo: never }] },
  async (scene) => {
    for (const path of PATHS.slice(0, 3)) {
      const { status, headMs } = await scene.get(path);
      assert.deepEqual([status, headMs], [404, IDLE_MS]);
    }
    assert.equal(scene.logged("upstream is down").length, 1);
    const { status, headMs } = await scene.get(PATHS[3] ?? "");
    assert.equal(status, 404);
    assert.ok(headMs < 100, `${headMs} ms`);
    assert.deepEqual(scene.counts(new RegExp(PATHS[3] ?? "")), [0]);
    scene.behave(0);
    const returnedAtMs = scene.nowMs;
    while ((await scene.get(FIRST)).status !== 200) await scene.pause(10);
    assert.ok(scene.nowMs - returnedAtMs <= 2_000, `${scene.nowMs - returnedAtMs} ms`);
  },
);

sceneTest(
  "unproven: an upstream that vanished is waited for once",
  { objects, upstreams: [{}] },
  async (scene) => {
    assert.equal((await scene.get(FIRST)).status, 200);
    scene.behave(0, { state: "silent" });
    const waited = [];
    for (const path of PATHS.slice(1, 4)) {
      const { status, headMs } = await scene.get(path);
      assert.equal(status, 404);
      waited.push(headMs);
    }
    const [first = 0, ...others] = waited;
    assert.ok(first <= DIAL_MS, `${first} ms`);
    assert.ok(others.every((headMs) => headMs < SOON_MS), `${others} ms`);
  },
);

sceneTest(
  "unproven: a preferred black hole costs hits of another little",
  { objects, upstreams: [{ state: "silent" }, {}] },
  async (scene) => {
    for (const path of PATHS) {
      const { status, headMs } = await scene.get(path);
      assert.equal(status, 200);
      assert.ok(headMs <= 300, `${headMs} ms`);
    }
    await untilLogged(scene, "upstream is down");
  },
);

sceneTest(
  "timeout: an upstream that accepts and says nothing is 404 after the idle timeout",
  { objects, upstreams: [{ narinfo: never }] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs], [404, IDLE_MS]);
    assert.equal(scene.logged("upstream failed")[0]?.["reason"], "timeout");
  },
);

sceneTest(
  "timeout: a narinfo that stops in the middle is 404 after the idle timeout",
  { objects, upstreams: [{ narinfo: (answer) => ({ ...answer, stallAt: 20 }) }] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs], [404, IDLE_MS]);
  },
);

sceneTest(
  "timeout: a slow upstream does not delay a preferred quick one",
  { objects, upstreams: [{}, { narinfo: never }] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs], [200, 0]);
  },
);

sceneTest(
  "return: a NAR whose only source was silent is served within two seconds of its return",
  { objects, upstreams: [{ objects: [] }, {}] },
  async (scene) => {
    const paths: string[] = [];
    for (const object of objects) paths.push(await scene.narPath(object));
    scene.behave(1, MUTE);
    for (const path of paths.slice(0, 3)) await scene.get(path);
    await untilLogged(scene, "upstream is down");
    await scene.pause(60_000);
    scene.behave(1);
    const returnedAtMs = scene.nowMs;
    while ((await scene.get(paths[4] ?? "")).status !== 200) await scene.pause(10);
    assert.ok(scene.nowMs - returnedAtMs <= 2_000, `${scene.nowMs - returnedAtMs} ms`);
  },
);

sceneTest(
  "return: one that answers no older probe is used within two seconds",
  { objects, upstreams: [{}] },
  async (scene) => {
    scene.behave(0, MUTE);
    await Promise.all(PATHS.slice(1).map((path) => scene.get(path)));
    await untilLogged(scene, "upstream is down");
    const probes = scene.counts(/nix-cache-info/)[0] ?? 0;
    while ((scene.counts(/nix-cache-info/)[0] ?? 0) <= probes) await scene.pause(10);
    // The upstream does not answer the probe that is in flight now.
    scene.behave(0);
    const returnedAtMs = scene.nowMs;
    while ((await scene.get(FIRST)).status !== 200) await scene.pause(10);
    assert.ok(scene.nowMs - returnedAtMs <= 2_000, `${scene.nowMs - returnedAtMs} ms`);
  },
);

sceneTest(
  "return: requests that find every upstream vanished share their probes",
  { objects, upstreams: [{ state: "silent" }, {}] },
  async (scene) => {
    scene.behave(1, { state: "silent" });
    for (const path of PATHS.slice(1)) await scene.get(path);
    while (scene.logged("upstream is down").length < 2) await scene.pause(10);
    const seen = await Promise.all(Array.from({ length: 50 }, () => scene.get(FIRST)));
    for (const { status, headMs } of seen) {
      assert.equal(status, 404);
      assert.ok(headMs < SOON_MS, `${headMs} ms`);
    }
  },
);

sceneTest(
  "retry: a Retry-After of two minutes is a 404 at once",
  { objects, upstreams: [{ narinfo: status(429, { "retry-after": "120" }) }] },
  async (scene) => {
    const { status, headMs } = await scene.get(FIRST);
    assert.deepEqual([status, headMs, scene.counts(NARINFO)], [404, 0, [1]]);
  },
);

sceneTest(
  "narinfo: a 404 of every upstream is remembered for the given time, to the millisecond",
  { objects, upstreams: [{ narinfo: status(404) }], negativeTtlMs: 5_000 },
  async (scene) => {
    const sourceOf = async () => (await scene.get(FIRST)).headers.get("x-cache");
    assert.equal(await sourceOf(), "MISS");
    scene.behave(0);
    await scene.pause(4_999);
    assert.equal(await sourceOf(), "HIT");
    assert.deepEqual(scene.counts(NARINFO), [1]);
    await scene.pause(2);
    assert.equal((await scene.get(FIRST)).status, 200);
  },
);

for (
  const [name, document] of Object.entries({
    "a timeout": never,
    "a stalled body": (answer: Parameters<typeof never>[0]) => ({ ...answer, stallAt: 2 }),
  })
) {
  sceneTest(
    `documents: ${name} is a 404 after the idle timeout, and is not remembered`,
    { objects, upstreams: [{ document: text("done\n") }] },
    async (scene) => {
      const honest = text("done\n");
      scene.behave(0, {
        document: (answer, request) => document(honest(answer, request), request),
      });
      const { status, headers, headMs } = await scene.get(LOG_PATH);
      assert.deepEqual([status, headers.get("x-cache"), headMs], [404, "MISS", IDLE_MS]);
      scene.behave(0, { document: honest });
      assert.equal((await scene.get(LOG_PATH)).status, 200);
    },
  );
}

const MIB = 1 << 20;

for (
  const [name, headers, expectedMs] of [
    ["without a length leaves gaps of 4 ms for each 64 KiB", {}, 60],
    ["with its length does not", { "content-length": `${MIB}` }, 0],
  ] as const
) {
  sceneTest(
    `documents: a large one ${name}`,
    {
      objects,
      upstreams: [{ document: () => ({ status: 200, headers, body: new Uint8Array(MIB) }) }],
    },
    async (scene) => {
      const { status, bytes, endMs } = await scene.get(LOG_PATH);
      assert.deepEqual([status, bytes.length, endMs], [200, MIB, expectedMs]);
    },
  );
}

async function untilLogged(scene: Scene, msg: string): Promise<void> {
  for (let waits = 0; scene.logged(msg).length === 0; waits++) {
    assert.ok(waits < 6_000, `not logged within a minute: ${msg}`);
    await scene.pause(10);
  }
}
