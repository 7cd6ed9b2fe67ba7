import assert from "node:assert/strict";
import { Pulls, type PullsDeps } from "../../../src/history/pulls.ts";
import { PULL_BYTES_MAX } from "../../../src/metadata/history_keeper.ts";
import { HeldClock } from "../../support/held_clock.ts";
import { MemoryMetadataStore } from "../../support/memory_metadata_store.ts";

const BEGIN_MS = Date.UTC(2026, 10, 27, 21, 10);
const SILENCE_MS = 10_000;

function pullsOver(keeper: PullsDeps["keeper"], more: Partial<PullsDeps> = {}): Pulls {
  const nameOf = (name: string) => Promise.resolve(`name of ${name}`);
  return new Pulls({
    keeper,
    nameOf,
    waitsOf: waitedForItself,
    askedUntil: () => Infinity,
    log: { debug() {} },
    ...more,
  });
}

const waitedForItself: PullsDeps["waitsOf"] = (name, fromMs, toMs) => [
  { upstream: `https://${name}.org`, isInVain: false, fromMs, toMs },
];

/** A NAR that waited for an upstream, and then came from it. */
function fetched(clock: HeldClock, pulls: Pulls, client: string, name: string, ms: number): void {
  const pull = pulls.open.begin(client, clock.nowMs());
  assert.ok(pull);
  const startedAtMs = clock.nowMs();
  clock.advance(ms);
  pulls.requestEnded(pull, {
    ...{ kind: "nar", name, result: "fetched", isFromUpstream: true, bytes: 1_000, startedAtMs },
    ...{ answeredAtMs: clock.nowMs(), endedAtMs: clock.nowMs() },
  }, name);
}

Deno.test("pulls: a pull that is over is written once, and is there after a restart", async () => {
  using clock = new HeldClock(BEGIN_MS);
  const keeper = new MemoryMetadataStore();
  const first = pullsOver(keeper);
  fetched(clock, first, "laptop", "a", 2_000);
  await first.look();
  assert.deepEqual(await keeper.pulls(9), [], "it may go on");
  clock.advance(SILENCE_MS);
  await first.look();
  await first.look();
  assert.equal((await keeper.pulls(9)).length, 1);

  fetched(clock, first, "laptop", "b", 500);
  await first[Symbol.asyncDispose]();
  const second = pullsOver(keeper);
  await using _second = second;
  const names = (await second.newest()).map(({ first: name, waitingMs }) => [name, waitingMs]);
  assert.deepEqual(names, [["name of b", 500], ["name of a", 2_000]], "larder's end ends it");
});

Deno.test("pulls: a request that runs for longer than the silence goes on with its pull", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  const pull = pulls.open.begin("laptop", clock.nowMs());
  const startedAtMs = clock.nowMs();
  clock.advance(60_000);
  assert.deepEqual(await pulls.newest(), []);
  assert.equal(pulls.open.begin("laptop", clock.nowMs()), pull);
  pull?.uncounted();
  assert.ok(pull);
  pulls.requestEnded(pull, {
    ...{ kind: "nar", name: "a", result: "hit", isFromUpstream: false },
    ...{ bytes: 7, startedAtMs, answeredAtMs: startedAtMs, endedAtMs: clock.nowMs() },
  }, "a");
  clock.advance(SILENCE_MS);
  const [only] = await pulls.newest();
  assert.deepEqual([only?.sendingMs, only?.ms, only?.savedBytes], [60_000, 60_000, 7]);
});

Deno.test("pulls: a database that cannot be written loses none, and is asked again", async () => {
  using clock = new HeldClock(BEGIN_MS);
  const keeper = new MemoryMetadataStore();
  let writes = 0;
  let isLocked = true;
  const locked: PullsDeps["keeper"] = {
    recordPulls(rows) {
      writes++;
      return isLocked ? Promise.reject(new Error("locked")) : keeper.recordPulls(rows);
    },
    pulls: (...query) => keeper.pulls(...query),
    findPull: (id) => keeper.findPull(id),
  };
  await using pulls = pullsOver(locked);
  fetched(clock, pulls, "laptop", "a", 100);
  clock.advance(SILENCE_MS);
  await pulls.look();
  await pulls.look();
  assert.equal(writes, 1, "a look each second is no write each second");
  const [shown] = await pulls.newest();
  assert.equal((await pulls.find(shown?.id ?? ""))?.slowest.length, 1);
  isLocked = false;
  clock.advance(SILENCE_MS);
  await pulls.look();
  assert.deepEqual((await keeper.pulls(9)).map(({ id }) => id), [shown?.id]);
  assert.equal((await pulls.newest()).length, 1);
});

Deno.test("pulls: the longest names and the most paths fit the row", async () => {
  using clock = new HeldClock(BEGIN_MS);
  const keeper = new MemoryMetadataStore();
  await using pulls = pullsOver(keeper, { nameOf: () => Promise.resolve("n".repeat(211)) });
  const client = "ü".repeat(500);
  for (let count = 0; count < 1_000; count++) {
    const name = `${count % 12}-`.repeat(60) + count;
    fetched(clock, pulls, client, name, 10 + count % 90);
  }
  clock.advance(SILENCE_MS);
  await pulls.look();
  const [{ id = "" } = {}] = await keeper.pulls(9);
  const row = await keeper.findPull(id);
  assert.ok((row?.summary.length ?? 0) <= PULL_BYTES_MAX.summary);
  assert.ok((row?.paths.length ?? 0) <= PULL_BYTES_MAX.paths);
  const [pull] = await pulls.newest(9, client);
  assert.equal(pull?.paths.fetched, 1_000);
  const whole = await pulls.find(id);
  assert.equal(whole?.slowest[0]?.ms, 99, "the slowest first");
});

Deno.test("pulls: memory is bounded, whoever asks for whatever", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  const begun = Array.from(
    { length: 500 },
    (_, index) => pulls.open.begin(`${index}`, clock.nowMs()),
  );
  assert.equal(new Set(begun).size, 129, "of so many clients, and one of the others");
  for (let count = 0; count < 20_000; count++) {
    fetched(clock, pulls, "0", `path-${count}.nar.xz`, 1);
  }
  for (const one of begun) one?.uncounted();
  clock.advance(SILENCE_MS);
  const [only] = await pulls.newest();
  assert.equal(only?.paths.fetched, 20_000, "each is counted, though few are named");
  assert.ok(((await pulls.find(only?.id ?? ""))?.slowest.length ?? 0) <= 50);
});

Deno.test("pulls: all that run when larder stops are kept", async () => {
  using clock = new HeldClock(BEGIN_MS);
  const keeper = new MemoryMetadataStore();
  const pulls = pullsOver(keeper);
  for (let client = 0; client < 100; client++) fetched(clock, pulls, `${client}`, "a", 1);
  await pulls[Symbol.asyncDispose]();
  assert.equal((await keeper.pulls(200)).length, 100);
});

Deno.test("pulls: clients without room for one of their own share one that counts them", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  for (let count = 0; count < 128; count++) pulls.open.begin(`${count}`, clock.nowMs());
  for (const client of ["a", "b", "b", "c"]) fetched(clock, pulls, client, client, 1_000);
  clock.advance(SILENCE_MS);
  const [only, ...none] = await pulls.newest();
  assert.deepEqual([only?.client, only?.paths.fetched, only?.isRunning], [
    "3 clients more",
    3,
    false,
  ]);
  assert.deepEqual(none, []);
});

Deno.test("pulls: a request for what its upstream had sent before has waited for nobody", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore(), {
    waitsOf: () => [],
    askedUntil: () => 0,
  });
  fetched(clock, pulls, "laptop", "a", 20);
  const [pull] = await pulls.newest();
  assert.deepEqual([pull?.waitingMs, pull?.sendingMs, pull?.upstreams], [0, 20, []]);
});

Deno.test("pulls: a running one is shown as running, and keeps its id when it ends", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  fetched(clock, pulls, "laptop", "a", 2_000);
  pulls.open.begin("laptop", clock.nowMs());
  clock.advance(5_000);
  const [running] = await pulls.newest(9, "laptop");
  assert.deepEqual([running?.isRunning, running?.first, running?.ms], [true, "name of a", 2_000]);
  assert.deepEqual([running?.underWay, running?.underWayMs], [1, 5_000]);
  assert.equal((await pulls.find(running?.id ?? ""))?.slowest[0]?.ms, 2_000);
  await pulls[Symbol.asyncDispose]();
  const [over] = await pulls.newest();
  assert.deepEqual([over?.isRunning, over?.id], [false, running?.id]);
});

Deno.test("pulls: a client that always has a request in flight begins a new pull each hour", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  pulls.open.begin("ci", clock.nowMs());
  for (let minute = 0; minute < 190; minute++) fetched(clock, pulls, "ci", `${minute}`, 60_000);
  const all = await pulls.newest();
  assert.deepEqual(all.map(({ isRunning }) => isRunning), [true, false, false, false]);
  assert.deepEqual(all.map(({ paths }) => paths.fetched), [10, 60, 60, 60]);
  assert.ok(all.every(({ ms }) => ms <= 3_600_000));
});

Deno.test("pulls: each path counts once for its upstream, however many there are", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore(), {
    waitsOf: (_, fromMs, toMs) => [{ upstream: "https://one.org", isInVain: false, fromMs, toMs }],
  });
  for (const _ of ["narinfo", "nar"]) {
    for (let path = 0; path < 300; path++) fetched(clock, pulls, "ci", `${path}.nar.xz`, 20);
  }
  clock.advance(SILENCE_MS);
  const [{ upstreams } = {}] = await pulls.newest();
  assert.deepEqual(upstreams, [
    { host: "one.org", paths: 300, inVain: 0, sentPaths: 0, waitedMs: 12_000, sentMs: 0 },
  ]);
});

Deno.test("pulls: many hits between two looks are all told, and their pauses stay pauses", async () => {
  using clock = new HeldClock(BEGIN_MS);
  await using pulls = pullsOver(new MemoryMetadataStore());
  for (let hit = 0; hit < 10_000; hit++) {
    const pull = pulls.open.begin("laptop", clock.nowMs());
    assert.ok(pull);
    const startedAtMs = clock.nowMs();
    clock.advance(1);
    pulls.open.narinfoHit(pull, `${hit % 500}.nar.xz`, 3, startedAtMs, clock.nowMs());
    clock.advance(1);
  }
  clock.advance(SILENCE_MS);
  const [only] = await pulls.newest();
  assert.deepEqual([only?.bytes, only?.paths.hit], [30_000, 500]);
  assert.deepEqual([only?.sendingMs, only?.pauseMs], [10_000, 9_999]);
});
