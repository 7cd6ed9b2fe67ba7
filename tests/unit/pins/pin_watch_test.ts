import assert from "node:assert/strict";
import { Failure } from "../../../src/base/failure.ts";
import type { PinRoot } from "../../../src/metadata/metadata_store.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import type { PinnedClosure } from "../../../src/pins/pinned_closures.ts";
import { PinWatch, type PinWatchDeps } from "../../../src/pins/pin_watch.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { eventually } from "../../support/eventually.ts";
import { PlayedTime } from "../../support/played_time.ts";

const hash = (count: number) => String(count).padStart(32, "0") as StorePathHash;

/** A watch over `count` pins, with a clock and counts that the test decides on. */
function watched(count: number) {
  const state = { nowMs: 0, reads: 0, counts: 0, closure: Promise.withResolvers<void>() };
  const roots = Array.from({ length: count }, (_, index): PinRoot => {
    return { storePathHash: hash(index), pinnedAtMs: index };
  });
  const deps: PinWatchDeps = {
    metadata: {
      pins: () => {
        state.reads++;
        return Promise.resolve(roots);
      },
      findPin: () => Promise.resolve(undefined),
      findNarinfo: () => Promise.resolve(undefined),
    },
    closures: {
      readLost: () => Promise.resolve(),
      async closures() {
        state.counts++;
        await state.closure.promise;
        return roots.map(({ storePathHash: root }): PinnedClosure => {
          return {
            ...{ root, name: null, pinnedAt: "", stored: 3, missing: 1, bytes: 9, ownBytes: 4 },
            ...{ keepComplete: false, complete: null, look: null },
          };
        });
      },
    },
    nowMs: () => state.nowMs,
    log: createLogger("error", { write() {} }),
  };
  return { state, roots, pins: new PinWatch(deps), metadata: deps.metadata };
}

Deno.test("pin watch: the newest hundred roots are there while they are counted", async () => {
  const { state, pins } = watched(250);
  const first = await pins.list();
  assert.deepEqual([first?.count, first?.roots.length, first?.countedAtMs], [250, 100, undefined]);
  assert.deepEqual(first?.roots[0], {
    root: hash(249),
    name: undefined,
    pinnedAtMs: 249,
    under: [],
    rolls: false,
    size: undefined,
    notes: {},
  });

  state.nowMs = 5;
  state.closure.resolve();
  await eventually("they are counted", async () => (await pins.list())?.countedAtMs === 5);
  assert.deepEqual((await pins.list())?.roots[0]?.size, {
    stored: 3,
    missing: 1,
    bytes: 9,
    ownBytes: 4,
  });
});

Deno.test("pin watch: the pins behind the newest hundred are there, too", async () => {
  const { state, pins } = watched(250);
  const from = async (at: number) => (await pins.list(at))?.roots.map(({ root }) => root) ?? [];
  const listed = [...await from(0), ...await from(100), ...await from(200)];
  assert.deepEqual(listed, Array.from({ length: 250 }, (_, index) => hash(249 - index)));
  assert.deepEqual(await from(300), []);
  state.closure.resolve();
  await pins[Symbol.asyncDispose]();
});

Deno.test("pin watch: while the database hangs or fails, the roots of the last read are there", async () => {
  using time = new PlayedTime();
  const { state, pins, metadata } = watched(3);
  state.closure.resolve();
  const answers: Promise<readonly PinRoot[]>[] = [
    new Promise(() => undefined),
    Promise.reject(new Failure("away", "Cannot use the database")),
  ];
  answers[1]?.catch(() => undefined);
  assert.equal((await pins.list())?.count, 3);
  for (const answer of answers) {
    metadata.pins = () => answer;
    state.nowMs += 60_000;
    const listed = pins.list();
    await time.advance(1_000);
    assert.deepEqual((await listed)?.roots.map(({ root }) => root), [hash(2), hash(1), hash(0)]);
  }
});

Deno.test("pin watch: after a long count there is none for twenty times as long", async () => {
  const { state, pins } = watched(1);
  const countsAt = async (nowMs: number) => {
    state.nowMs = nowMs;
    await pins.list();
    return state.counts;
  };
  assert.equal(await countsAt(0), 1);
  assert.equal(await countsAt(29_000), 1, "one at a time");
  state.closure.resolve();
  await eventually("it is counted", async () => (await pins.list())?.countedAtMs === 29_000);
  assert.equal(await countsAt(29_000 * 21 - 1), 1);
  assert.equal(await countsAt(29_000 * 21), 2);
  await pins[Symbol.asyncDispose]();
  assert.equal(await countsAt(10 ** 9), 2, "nobody counts for a server that stops");
});

Deno.test("pin watch: roots are read after a change and every half minute, no more", async () => {
  const { state, roots, pins } = watched(1);
  const readsAt = async (nowMs: number) => {
    state.nowMs = nowMs;
    await pins.list();
    return state.reads;
  };
  assert.deepEqual([await readsAt(0), await readsAt(1), await readsAt(29_999)], [1, 1, 1]);
  assert.equal(await readsAt(30_000), 2);
  roots.pop();
  pins.changed();
  assert.equal((await pins.list())?.count, 0);
  assert.equal(state.reads, 3);
  state.closure.resolve();
  await pins[Symbol.asyncDispose]();
});

Deno.test("pin watch: after a change the next reader waits for the count that it needs", async () => {
  const { state, pins } = watched(1);
  assert.equal((await pins.list())?.roots[0]?.size, undefined);
  state.closure.resolve();
  await eventually("it is counted", async () => (await pins.list())?.countedAtMs === 0);
  assert.equal(state.counts, 1);

  state.nowMs = 5;
  pins.changed();
  assert.equal((await pins.list())?.countedAtMs, 5);
  state.nowMs = 9;
  assert.equal((await pins.list())?.countedAtMs, 5);
  assert.equal(state.counts, 2);
  await pins[Symbol.asyncDispose]();
});

Deno.test("pin watch: pins that are too many to count are still shown", async () => {
  const { state, pins } = watched(2);
  await pins.list();
  state.closure.reject(new Failure("overloaded", "Cannot read closures"));
  await pins[Symbol.asyncDispose]();
  const figures = await pins.list();
  assert.deepEqual([figures?.count, figures?.countedAtMs], [2, undefined]);
});
