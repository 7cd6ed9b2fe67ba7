import assert from "node:assert/strict";
import { fan } from "../support/prefetching.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { after, never, sceneTest } from "./scene.ts";

const NAR = /^\/nar\//;
/** The header timeout, and an answer that is much later. */
const [TIMEOUT_MS, LATE_MS] = [5_000, 20_000];

const SMALL = makeStoreObject({ name: "small" });

const LATE_NAR = {
  objects: [SMALL],
  upstreams: [{ nar: after(LATE_MS) }],
  prefetches: true,
  timeouts: { headerTimeoutMs: TIMEOUT_MS },
};

sceneTest(
  "prefetch: a NAR without an answer within the header timeout holds no place",
  LATE_NAR,
  async (scene) => {
    const path = await scene.narPath(SMALL);
    await scene.pause(TIMEOUT_MS - 1);
    assert.deepEqual([scene.counts(NAR), scene.openExchanges], [[1], 1]);
    await scene.pause(2);
    assert.equal(scene.openExchanges, 0);
    const nar = await scene.get(path);
    assert.deepEqual([nar.status, nar.isWhole, nar.headMs], [200, true, LATE_MS]);
    assert.deepEqual(scene.counts(NAR), [2]);
    assert.deepEqual(scene.log.filter(({ level }) => level === "warn"), []);
  },
);

sceneTest(
  "prefetch: a client that joins a NAR waits beyond the header timeout",
  LATE_NAR,
  async (scene) => {
    const path = await scene.narPath(SMALL);
    await scene.pause(TIMEOUT_MS - 1);
    const nar = await scene.get(path);
    assert.deepEqual([nar.status, nar.headers.get("x-cache")], [200, "JOINED"]);
    assert.equal(nar.headMs, LATE_MS - (TIMEOUT_MS - 1));
    assert.deepEqual(scene.counts(NAR), [1]);
  },
);

/** Nobody pulls a closure from an upstream that needs more than half of the header timeout. */
const SLOW_MS = TIMEOUT_MS / 2 + 1;
const FAN = fan(40);

for (const [what, delayMs, count] of [["over", SLOW_MS, 16], ["under", SLOW_MS - 2, 41]] as const) {
  sceneTest(
    `prefetch: ${count} of 41 NARs that each take a bit ${what} half the header timeout`,
    {
      objects: FAN,
      upstreams: [{ nar: after(delayMs) }],
      prefetches: true,
      timeouts: { headerTimeoutMs: TIMEOUT_MS },
    },
    async (scene) => {
      for (const object of FAN) await scene.narinfo(object);
      await scene.pause(60_000);
      assert.deepEqual([scene.counts(NAR), scene.openExchanges], [[count], 0]);
    },
  );
}

for (const [what, delayMs, count] of [["over", SLOW_MS, 0], ["under", SLOW_MS - 2, 10]] as const) {
  const objects = fan(10);
  const top = objects.at(-1);

  sceneTest(
    `prefetch: ${count} of 10 references where a narinfo takes a bit ${what} half the timeout`,
    {
      objects,
      upstreams: [{ narinfo: after(delayMs) }],
      prefetches: true,
      timeouts: { headerTimeoutMs: TIMEOUT_MS },
    },
    async (scene) => {
      assert.equal((await scene.narinfo(top)).status, 200);
      await scene.pause(60_000);
      assert.deepEqual(scene.counts(/\.narinfo$/), [1 + count]);
    },
  );
}

const OUTRUN = [1, 2].map((seed) => makeStoreObject({ name: "x", seed }));

sceneTest(
  "prefetch: no further NAR from an upstream that another one outran",
  {
    objects: OUTRUN,
    upstreams: [{ nar: never }, {}],
    prefetches: true,
    timeouts: { headerTimeoutMs: TIMEOUT_MS },
  },
  async (scene) => {
    const [first, second] = OUTRUN;
    assert.equal((await scene.nar(first)).isWhole, true);
    assert.deepEqual(scene.counts(NAR), [1, 1]);
    await scene.narinfo(second);
    await scene.pause(60_000);
    assert.deepEqual(scene.counts(NAR)[0], 1);
  },
);
