import assert from "node:assert/strict";
import { Remover } from "../../../src/cache/remove.ts";
import type { StoredName } from "../../../src/nix/stored_name.ts";
import type { RunFigures } from "../../../src/space/evictor.ts";
import { eventually } from "../../support/eventually.ts";
import { hash, narOf, put, rowOf } from "../../support/metadata_rows.ts";
import { StockedSpace } from "../../support/stocked_space.ts";

const WATCHER = { progress: () => undefined, isWanted: () => true };
const SEEDS = ["a", "b", "c", "d", "e"];

Deno.test("space: bytes that fit are reserved at once, and end with their scope", async () => {
  await using stocked = await StockedSpace.open(1_000);
  const { space } = stocked;
  {
    using _first = await space.reserve(600);
    using second = await space.reserve(500);
    assert.equal(second, undefined);
    assert.equal(space.budget.reservedBytes, 600);
  }
  assert.equal(space.budget.reservedBytes, 0);
  using again = await space.reserve(1_000);
  assert.ok(again);
});

Deno.test("space: a reservation evicts the paths used longest ago, with headroom", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);

  using taken = await stocked.space.reserve(100);

  assert.ok(taken);
  assert.deepEqual(await stocked.stored(SEEDS), ["b", "c", "d", "e"]);
  assert.equal(stocked.space.budget.usedBytes, 800);
  using second = await stocked.space.reserve(100);
  assert.ok(second);
  assert.deepEqual(await stocked.stored(SEEDS), ["b", "c", "d", "e"]);
  await eventually("one run is logged", () => stocked.logged("info").length === 1);
});

Deno.test("space: reservations at the same time never promise more than there is", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  const { space } = stocked;

  const taken = await Promise.all(Array.from({ length: 8 }, () => space.reserve(300)));

  assert.ok(space.budget.usedBytes + space.budget.reservedBytes <= 1_000);
  assert.equal(taken.filter((one) => one !== undefined).length, 3);
});

Deno.test("space: it is known without an eviction what may fit beside the pins", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 150);
  await stocked.pin("a");
  const { space } = stocked;
  using _taken = await space.reserve(100);
  // 750 are used, 150 of them pinned, and 100 reserved.
  const most = async () => {
    let bytes = 1_000;
    while (!space.mayFit(bytes)) bytes--;
    assert.deepEqual([await space.fits(bytes), await space.fits(bytes + 1)], [true, false]);
    return bytes;
  };
  assert.equal(await most(), 750);
  const loan = await space.lend(50);
  assert.equal(await most(), 750, "what is lent comes back");
  loan?.[Symbol.dispose]();
  assert.deepEqual(await stocked.stored(SEEDS), SEEDS);

  stocked.broken = true;
  assert.equal(await space.reserve(400), undefined, "nothing can be removed");
  await stocked.runsOver();
  assert.equal(await most(), space.budget.freeBytes);
  using loaned = await space.lend(space.budget.freeBytes);
  assert.ok(loaned);
  assert.equal(space.budget.freeBytes, 0);
  assert.ok(space.mayFit(1), "of what is lent");
  stocked.broken = false;
  await space.altered();
  assert.ok(space.mayFit(space.budget.freeBytes + 100), "a change is a new try");
});

Deno.test("space: room for a prefetch is free, or of what nobody used within the hour", async () => {
  await using stocked = await StockedSpace.open(1_000);
  const { space } = stocked;
  await stocked.store("a", 300);
  stocked.elapse(2 * 3_600_000);
  for (const seed of ["b", "c"]) await stocked.store(seed, 300);
  {
    using free = await space.reserveSpare(100);
    assert.ok(free);
  }
  assert.deepEqual([await space.hasSpare(400), await space.hasSpare(401)], [true, false]);
  assert.equal(await space.reserveSpare(401), undefined);
  assert.deepEqual(await stocked.stored(["a", "b", "c"]), ["a", "b", "c"]);
  using taken = await space.reserveSpare(400);
  assert.ok(taken);
  assert.deepEqual(await stocked.stored(["a", "b", "c"]), ["b", "c"]);
});

Deno.test("space: what is lent is called in before anything is evicted", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of ["a", "b"]) await stocked.store(seed, 200);
  const { space } = stocked;
  const loan = await space.lend(500);
  assert.ok(loan);
  assert.equal(await space.lend(200), undefined);
  assert.ok(!loan.signal.aborted, "a borrower calls nothing in");
  loan.signal.addEventListener("abort", () => loan[Symbol.dispose]());
  assert.ok(space.mayFit(600));

  using taken = await space.reserve(600);

  assert.ok(taken && loan.signal.aborted);
  assert.deepEqual(await stocked.stored(SEEDS), ["a", "b"]);
});

Deno.test("space: what a borrower has kept is not called in", async () => {
  await using stocked = await StockedSpace.open(1_000);
  const { space } = stocked;
  using loan = await space.lend(500);
  assert.equal(loan?.keep().bytes, 500);

  using taken = await space.reserve(600);

  assert.equal(taken, undefined);
  assert.ok(!loan?.signal.aborted);
});

Deno.test("space: NARs that are kept at the same time sweep what is left once", async () => {
  await using stocked = await StockedSpace.open(10_000);
  const { space } = stocked;
  await stocked.store("a", 200);
  const [at] = stocked.files;
  assert.ok(at);
  const taken = await Promise.all(Array.from({ length: 8 }, () => space.reserve(10)));
  await stocked.runsOver();
  await stocked.metadata.apply([{ kind: "nar-marked", at, owner: "test" }]);
  const { sweeper } = space;
  let sweeps = 0;
  const sweepOwn = sweeper.sweepOwn.bind(sweeper);
  sweeper.sweepOwn = () => {
    sweeps++;
    return sweepOwn();
  };
  await Promise.all(taken.map((one) => one && space.kept(one)));
  assert.deepEqual([sweeps, stocked.files.has(at)], [1, false]);
});

Deno.test("space: what is marked during a sweep is swept behind it", async () => {
  await using stocked = await StockedSpace.open(10_000);
  const { space } = stocked;
  await stocked.store("a", 200);
  await stocked.store("b", 200);
  const [first, second] = [...stocked.files];
  assert.ok(first && second);
  const taken = await Promise.all([space.reserve(10), space.reserve(10)]);
  await stocked.runsOver();
  const mark = (at: StoredName) =>
    stocked.metadata.apply([{ kind: "nar-marked", at, owner: "test" }]);
  await mark(first);
  const { sweeper } = space;
  const [swept, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const sweepOwn = sweeper.sweepOwn.bind(sweeper);
  sweeper.sweepOwn = async () => {
    sweeper.sweepOwn = sweepOwn;
    const files = await sweepOwn();
    swept.resolve();
    await goOn.promise;
    return files;
  };
  const keeping = taken[0] && space.kept(taken[0]);
  await swept.promise;
  await mark(second);
  const keptMeanwhile = taken[1] && space.kept(taken[1]);
  // The second NAR meets the running sweep.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve));
  goOn.resolve();
  await Promise.all([keeping, keptMeanwhile]);
  assert.deepEqual([...stocked.files], []);
});

Deno.test("space: a reservation that can never fit beside the pins evicts nothing", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 150);
  for (const seed of ["a", "b", "c"]) await stocked.pin(seed);

  assert.equal(await stocked.space.reserve(600), undefined);

  assert.deepEqual(await stocked.stored(SEEDS), SEEDS);
  using smaller = await stocked.space.reserve(500);
  assert.ok(smaller);
  assert.deepEqual(await stocked.stored(SEEDS), ["a", "b", "c"]);
});

Deno.test("space: with a grace time a run waits once for many entries", async () => {
  await using stocked = await StockedSpace.open(100_000, undefined, 1);
  for (let entry = 0; entry < 100; entry++) await stocked.store(`entry ${entry}`, 100);
  let batches = 0;

  const order = { targetBytes: 2_000, dryRun: false };
  const progress = () => void batches++;
  const done = await stocked.space.collect(order, { progress, isWanted: () => true });

  assert.equal(done?.evictedEntries, 80);
  assert.equal(batches, 1);
  assert.equal(stocked.files.size, 20);
});

Deno.test("space: a run that has reached its target evicts nothing more", async () => {
  await using stocked = await StockedSpace.open(2_000);
  await stocked.store("a", 800);
  await stocked.store("b", 900);
  const { budget } = stocked.space;
  const isWanted = () => true;
  // The download that waited for the room is kept before the run looks again.
  const progress = () => queueMicrotask(() => budget.observe({ ...budget.seen, usedBytes: 1_900 }));

  const order = { targetBytes: 1_000, dryRun: false };
  const done = await stocked.space.collect(order, { progress, isWanted });

  assert.equal(done?.evictedEntries, 1);
  assert.deepEqual(await stocked.stored(SEEDS), ["b"]);
});

Deno.test("space: a pinned and busy oldest prefix does not stall eviction", async () => {
  await using stocked = await StockedSpace.open(1_000);
  await stocked.store("a", 200, ["b"]);
  await stocked.store("b", 200);
  stocked.reads.begin(await stocked.store("c", 200));
  for (const seed of ["d", "e"]) await stocked.store(seed, 200);
  await stocked.pin("a");

  using taken = await stocked.space.reserve(200);

  assert.ok(taken);
  assert.deepEqual(await stocked.stored(SEEDS), ["a", "b", "c", "e"]);
});

Deno.test("space: many narinfos of a busy NAR do not stall eviction either", async () => {
  await using stocked = await StockedSpace.open(1_000);
  const busy = await stocked.store("a", 200);
  const shared = narOf(hash("a"));
  const sharers = Array.from({ length: 100 }, (_, index) => hash(`sharer ${index}`));
  await stocked.metadata.apply(
    sharers.map((path) => ({ ...put(path, [], 1), nar: shared, row: rowOf(path, shared) })),
  );
  for (const seed of ["b", "c", "d", "e"]) await stocked.store(seed, 200);
  stocked.reads.begin(busy);

  using taken = await stocked.space.reserve(100);

  assert.ok(taken);
  assert.deepEqual(await stocked.stored(SEEDS), ["a", "c", "d", "e"]);
});

Deno.test("space: pins above the limit are a warning with the figures, once a run", async () => {
  await using stocked = await StockedSpace.open(500);
  await stocked.store("a", 600, ["b"]);
  await stocked.store("b", 100);
  await stocked.store("c", 100);
  await stocked.pin("a");

  assert.equal(await stocked.space.reserve(10), undefined);
  await eventually("the run is over", () => stocked.logged("warn").length > 0);
  assert.equal(await stocked.space.reserve(10), undefined);

  assert.deepEqual(await stocked.stored(SEEDS), ["a", "b"]);
  const warnings = stocked.log.filter(({ level }) => level === "warn");
  assert.equal(warnings.length, 1);
  const { ts: _, duration_ms: __, target_bytes: ___, ...facts } = warnings[0] as unknown as Record<
    string,
    unknown
  >;
  assert.deepEqual(facts, {
    level: "warn",
    msg: "eviction did not reach its target",
    freed_bytes: 100,
    entries: 1,
    used_bytes: 700,
    limit_bytes: 500,
    limit_from: "--cache-max-size",
    pinned_bytes: 700,
    reserved_bytes: 0,
    busy_bytes: 0,
    hint: "raise --cache-max-size, or unpin something",
  });
});

Deno.test("space: a hopeless eviction is tried and logged once, until a change", async () => {
  await using stocked = await StockedSpace.open(500);
  const { space } = stocked;
  const other = await stocked.store("a", 600);
  await stocked.store("b", 100);
  await stocked.pin("a");
  let runs = 0;
  const { evict } = stocked.metadata;
  stocked.metadata.evict = (order) => {
    runs++;
    return evict.call(stocked.metadata, order);
  };
  /** An hour of timers and requests. */
  const anHour = async () => {
    for (let minute = 0; minute < 60; minute++) {
      stocked.elapse(60_000);
      await space.refresh();
      stocked.reads.begin(other)();
      assert.equal(await space.reserve(10), undefined);
      space.tidy();
      await stocked.runsOver();
    }
    const told = [runs, stocked.logged("warn").length];
    runs = 0;
    stocked.log.length = 0;
    return told;
  };
  await stocked.runsOver();
  const [first, said] = await anHour();
  assert.ok(first !== undefined && first <= 2, `${first} batches`);
  assert.equal(said, 1);
  assert.deepEqual(await anHour(), [0, 0]);

  await stocked.store("c", 50);
  await stocked.pin("c");
  assert.deepEqual(await anHour(), [1, 1]);
  await stocked.unpin("c");
  assert.deepEqual(await anHour(), [2, 1]);
  assert.deepEqual(await stocked.stored(["a", "b", "c"]), ["a"]);
  await stocked.unpin("a");
  assert.ok(await space.reserve(10));
});

Deno.test("space: a pinned NAR with a reader causes retries, but one warning", async () => {
  await using stocked = await StockedSpace.open(500);
  const { space } = stocked;
  const a = await stocked.store("a", 600);
  stocked.reads.begin(a);
  const other = narOf(hash("other")).name;
  await stocked.pin("a");
  for (let count = 0; count < 20; count++) {
    stocked.elapse(10_000);
    stocked.reads.begin(other)();
    space.tidy();
    await stocked.runsOver();
  }
  assert.deepEqual(stocked.logged("warn"), ["eviction did not reach its target"]);
});

Deno.test("space: a requested run that misses its target leaves no warning", async () => {
  await using stocked = await StockedSpace.open(500);
  await stocked.store("a", 300);
  await stocked.store("b", 100);
  await stocked.pin("a");
  const done = await stocked.space.collect({ targetBytes: 0, dryRun: false }, WATCHER);
  assert.deepEqual([done?.reached, done?.freedBytes], [false, 100]);
  assert.deepEqual(stocked.logged("warn"), []);
  assert.deepEqual(stocked.logged("info"), ["evicted"]);
});

Deno.test("space: a removal by request ends the outage of a missed target", async () => {
  await using stocked = await StockedSpace.open(500);
  const { metadata, reads, space: { sweeper } } = stocked;
  await stocked.store("a", 450);
  await stocked.store("b", 100);
  await stocked.pin("a");
  assert.equal(await stocked.space.reserve(100), undefined);
  await stocked.runsOver();
  assert.deepEqual(stocked.logged("warn"), ["eviction did not reach its target"]);
  const over = () => stocked.logged("info").filter((msg) => /again/.test(msg)).length;
  await stocked.space.altered();
  assert.equal(over(), 0);
  const remover = new Remover({ metadata, sweeper, reads, changed() {} });
  await remover.narinfo(hash("a"));
  await stocked.space.altered();
  assert.equal(over(), 1);
});

Deno.test("space: a requested run ends an outage only if it frees the missing bytes", async () => {
  await using stocked = await StockedSpace.open(500);
  await stocked.store("a", 450);
  await stocked.store("b", 100);
  await stocked.pin("a");
  assert.equal(await stocked.space.reserve(100), undefined);
  await stocked.runsOver();
  assert.deepEqual(stocked.logged("warn"), ["eviction did not reach its target"]);
  const over = () => stocked.logged("info").filter((msg) => /again/.test(msg)).length;
  await stocked.space.collect({ targetBytes: 500, dryRun: false }, WATCHER);
  assert.equal(over(), 0);
  await stocked.unpin("a");
  await stocked.space.collect({ targetBytes: 0, dryRun: false }, WATCHER);
  assert.equal(over(), 1);
});

Deno.test("space: a NAR with a reader can go as soon as the reader has left", async () => {
  await using stocked = await StockedSpace.open(500);
  const { space } = stocked;
  const busy = await stocked.store("a", 450);
  const end = stocked.reads.begin(busy);
  assert.equal(await space.reserve(100), undefined);
  await stocked.runsOver();
  end();
  assert.ok(await space.reserve(100));
});

Deno.test("space: a file that another member brings in place of a removed one may go", async () => {
  await using stocked = await StockedSpace.open(500);
  const { space, metadata } = stocked;
  await stocked.store("a", 450);
  const [at] = stocked.files;
  assert.ok(at);
  // The other member's removal is running: no file here may go.
  await metadata.apply([{ kind: "nar-marked", at, owner: "other" }]);
  assert.equal(await space.reserve(100), undefined);
  await stocked.runsOver();
  await metadata.apply([{ kind: "nar-gone", at }]);
  await stocked.store("b", 450);
  await space.refresh();
  assert.ok(await space.reserve(100));
  assert.deepEqual(await stocked.stored(["a", "b"]), []);
});

Deno.test("space: an unpinned path goes when space is needed", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  for (const seed of SEEDS) await stocked.pin(seed);
  assert.equal(await stocked.space.reserve(200), undefined);

  await stocked.unpin("c");

  using taken = await stocked.space.reserve(200);
  assert.ok(taken);
  assert.deepEqual(await stocked.stored(SEEDS), ["a", "b", "d", "e"]);
});

Deno.test("space: a file that cannot be removed stays counted, and is tried again", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  stocked.broken = true;

  assert.equal(await stocked.space.reserve(100), undefined);

  assert.equal(stocked.space.budget.usedBytes, 1_000);
  assert.ok(stocked.logged("error").includes("nar not removed"));
  stocked.broken = false;
  stocked.space.changed();
  using taken = await stocked.space.reserve(100);
  assert.ok(taken);
  assert.equal(stocked.files.size, 4);
});

Deno.test("space: while the database fails nothing is promised, and nothing hangs", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  const { metadata, space } = stocked;
  const { protect, evict } = metadata;
  const fail = () => Promise.reject(new Error("locked"));
  Object.assign(metadata, { protect: fail, evict: fail });

  assert.equal(await space.reserve(100), undefined);

  await eventually("it is said", () => stocked.logged("error").includes("eviction failed"));
  Object.assign(metadata, { protect, evict });
  space.changed();
  using taken = await space.reserve(100);
  assert.ok(taken);
});

Deno.test("space: a run whose figures cannot be read ends all the same", async () => {
  await using stocked = await StockedSpace.open(1_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  const { metadata, space } = stocked;
  stocked.reads.begin(await stocked.store("busy", 0));
  metadata.findNar = () => Promise.reject(new Error("unreadable"));

  for (const [index, bytes] of [100, 300].entries()) {
    using taken = await space.reserve(bytes);
    assert.ok(taken);
    await eventually("the run is over", () => {
      return stocked.logged("warn").filter((msg) => msg === "busy nars not counted").length > index;
    });
  }
});

Deno.test("space: a dry run has the figures of the run after it, shared files once", async () => {
  const seen: RunFigures[] = [];
  await using stocked = await StockedSpace.open(10_000, (figures) => void seen.push(figures));
  const seeds = Array.from({ length: 40 }, (_, index) => `path ${index}`);
  for (const seed of seeds) await stocked.store(seed, 200);
  await stocked.pin(seeds[1] ?? "");
  await stocked.metadata.apply([{ kind: "remove-narinfo", storePathHash: hash(seeds[3] ?? "") }]);
  const order = { targetBytes: 1_500 };

  const told = await stocked.space.collect({ ...order, dryRun: true }, WATCHER);
  assert.equal(stocked.files.size, 40);
  const done = await stocked.space.collect({ ...order, dryRun: false }, WATCHER);

  assert.deepEqual({ ...told, dryRun: false }, done);
  assert.equal(done?.usedBytes, 1_400);
  assert.equal(done?.freedBytes, 33 * 200);
  assert.ok(done?.reached);
  assert.deepEqual(seen.map(({ freedBytes }) => freedBytes), [33 * 200]);
});

Deno.test("space: without a limit everything fits, and there is nothing to aim at", async () => {
  await using stocked = await StockedSpace.open(Infinity);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  using taken = await stocked.space.reserve(Number.MAX_SAFE_INTEGER);
  assert.ok(taken);
  assert.equal(stocked.space.collect({ dryRun: false }, WATCHER), undefined);
});

Deno.test("space: a limit that was lowered is reached without a request", async () => {
  await using stocked = await StockedSpace.open(500);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  await stocked.space.refresh();
  await eventually("it is within the limit", () => stocked.space.budget.usedBytes <= 450);
  assert.deepEqual(await stocked.stored(SEEDS), ["d", "e"]);
});

Deno.test("space: a disk that is full below the limit has the coldest tenth evicted", async () => {
  await using stocked = await StockedSpace.open(10_000);
  for (const seed of SEEDS) await stocked.store(seed, 200);
  stocked.space.diskFull();
  await eventually("there is room", () => stocked.space.budget.usedBytes <= 900);
  assert.deepEqual(await stocked.stored(SEEDS), ["b", "c", "d", "e"]);
});
