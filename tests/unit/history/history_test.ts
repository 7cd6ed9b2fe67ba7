import { playRuntime } from "../../../src/runtime/current.ts";
import { SystemClock, type Timer } from "../../../src/runtime/clock.ts";
import assert from "node:assert/strict";
import fc from "fast-check";
import { type Counters, History } from "../../../src/history/history.ts";
import type { HistoryKeeper } from "../../../src/metadata/history_keeper.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";
import { checkProperty } from "../../support/property.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const BEGIN_MS = Date.UTC(2026, 2, 1);

const NOTHING: Counters = {
  narinfo_hits: 0,
  narinfo_misses: 0,
  nar_hits: 0,
  nar_misses: 0,
  absent: 0,
  served_bytes: 0,
  fetched_bytes: 0,
  saved_bytes: 0,
  evicted_bytes: 0,
  evicted_entries: 0,
};

/** One life of a larder, which serves bytes. Ends by disposing of it, or like a kill -9. */
class Life {
  nowMs = BEGIN_MS;
  servedBytes = 0;
  inFlight = 0;
  readonly history: History;

  constructor(keeper: HistoryKeeper, nowMs = BEGIN_MS, hasOthers = false) {
    this.nowMs = nowMs;
    this.history = new History({
      keeper,
      counters: () => ({ ...NOTHING, served_bytes: this.servedBytes }),
      storedBytes: () => 7,
      inFlight: () => this.inFlight,
      nowMs: () => this.nowMs,
      log: { debug() {} },
      hasOthers,
    });
  }

  get lifetimeBytes(): number {
    return this.history.lifetime().get("served_bytes") ?? 0;
  }
}

Deno.test("history: lifetime totals survive a restart and a kill", async () => {
  const keeper = new MemoryMetadataStore();
  const first = new Life(keeper);
  await first.history.start();
  first.servedBytes = 300;
  first.nowMs += MINUTE_MS;
  await first.history[Symbol.asyncDispose]();

  const second = new Life(keeper, BEGIN_MS + DAY_MS);
  await using _second = second.history;
  await second.history.start();
  assert.equal(second.lifetimeBytes, 300);
  second.servedBytes = 50;
  await second.history.write();
  second.servedBytes = 70;
  assert.equal(second.lifetimeBytes, 370, "up to this moment");

  const afterKill = new Life(keeper, BEGIN_MS + 2 * DAY_MS);
  await using _third = afterKill.history;
  await afterKill.history.start();
  assert.equal(afterKill.lifetimeBytes, 350);
  assert.equal(afterKill.history.lifetime().get("since_ms"), BEGIN_MS);
});

Deno.test("history: two members on one database add up", async () => {
  const keeper = new MemoryMetadataStore();
  const [one, other] = [new Life(keeper), new Life(keeper)];
  for (const life of [one, other]) await life.history.start();
  [one.servedBytes, other.servedBytes] = [100, 20];
  await one.history.write();
  await other.history.write();
  await one.history.write();
  assert.deepEqual([one.lifetimeBytes, other.lifetimeBytes], [120, 120]);
  for (const life of [one, other]) await life.history[Symbol.asyncDispose]();
  assert.equal((await lifetimeOf(keeper)).get("served_bytes"), 120);
});

Deno.test("history: rows that a locked database refuses are written later", async () => {
  const keeper = new MemoryMetadataStore();
  let isLocked = true;
  const life = new Life({
    async recordHistory(rows, expired) {
      if (isLocked) throw new Error("locked");
      await keeper.recordHistory(rows, expired);
    },
    history: () => keeper.history(),
  });
  await using _ = life.history;
  life.servedBytes = 5;
  await life.history.write();
  life.nowMs += 5 * MINUTE_MS;
  life.servedBytes = 9;
  await life.history.write();
  assert.deepEqual([life.lifetimeBytes, await keeper.history()], [9, []]);
  isLocked = false;
  await life.history.write();
  assert.deepEqual([life.lifetimeBytes, (await lifetimeOf(keeper)).get("served_bytes")], [9, 9]);
  const minutes = life.history.slots("hour").map(({ figures }) => figures?.get("served_bytes"));
  assert.deepEqual(minutes.filter((bytes) => bytes !== undefined), [5, 4]);
});

Deno.test("history: every range shows its own slots, gaps included", async () => {
  const life = new Life(new MemoryMetadataStore());
  await using _ = life.history;
  await life.history.start();
  life.servedBytes = 10;
  await life.history.write();
  life.nowMs += 90 * MINUTE_MS;
  life.servedBytes = 30;
  const hour = life.history.slots("hour");
  assert.equal(hour.length, 60);
  assert.deepEqual(hour.filter(({ figures }) => figures !== undefined).length, 1);
  assert.equal(hour.at(-1)?.figures?.get("served_bytes"), 20);
  const day = life.history.slots("day").flatMap(({ figures }) => figures ?? []);
  assert.deepEqual(day.map((figures) => figures.get("served_bytes")), [10, 20]);
});

Deno.test("history: downloads in flight add their time", async () => {
  const life = new Life(new MemoryMetadataStore());
  await using _ = life.history;
  life.inFlight = 3;
  for (let count = 0; count < 5; count++) life.history.countInFlight();
  assert.equal(life.history.lifetime().get("in_flight_ms"), 3 * 5 * 2_000);
});

const steps = fc.array(
  fc.record({ bytes: fc.nat(1_000), minutes: fc.nat(4_000), ends: fc.boolean() }),
  { minLength: 1, maxLength: 20 },
);

checkProperty(
  "history: lives and kills take nothing back, and stay below 3,000 rows",
  fc.asyncProperty(steps, async (all) => {
    const keeper = new MemoryMetadataStore();
    let life = new Life(keeper);
    let total = 0;
    for (const { bytes, minutes, ends } of all) {
      life.servedBytes += bytes;
      life.nowMs += minutes * MINUTE_MS;
      await life.history.write();
      assert.equal(life.lifetimeBytes, total += bytes);
      if (!ends) continue;
      life = new Life(keeper, life.nowMs);
      await startedFor(life, () => assert.equal(life.lifetimeBytes, total));
    }
    assert.ok((await keeper.history()).length < 3_000);
  }),
  { runs: 60 },
);

/** Starts the history for a moment. */
async function startedFor({ history }: Life, check: () => void): Promise<void> {
  await history.start();
  check();
  await history[Symbol.asyncDispose]();
}

async function lifetimeOf(keeper: HistoryKeeper): Promise<ReadonlyMap<string, number>> {
  const life = new Life(keeper);
  await life.history.start();
  await using _ = life.history;
  return life.history.lifetime();
}

Deno.test("history: members of one database show the same totals within ten seconds", async () => {
  const beats: (() => unknown)[] = [];
  class Beats extends SystemClock {
    override every(everyMs: number, run: () => unknown): Timer {
      if (everyMs === 5_000) beats.push(run);
      return { cancel() {}, [Symbol.dispose]() {} };
    }
  }
  const keeper = new MemoryMetadataStore();
  const [one, other] = [0, 1].map(() => new Life(keeper, BEGIN_MS, true)) as [Life, Life];
  using _clock = playRuntime({ clock: new Beats() });
  for (const { history } of [one, other]) await history.start();
  assert.equal(beats.length, 2, "each writes every five seconds");
  one.servedBytes = 300;
  for (let beat = 0; beat < 2; beat++) {
    for (const run of beats) run();
    for (const { history } of [one, other]) await history.write();
  }
  assert.deepEqual([one.lifetimeBytes, other.lifetimeBytes], [300, 300]);
  for (const { history } of [one, other]) await history[Symbol.asyncDispose]();
});
