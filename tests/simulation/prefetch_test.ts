import assert from "node:assert/strict";
import { makeStoreObject } from "../support/store_object.ts";
import { after, sceneTest } from "./scene.ts";

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
