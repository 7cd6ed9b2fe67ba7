import assert from "node:assert/strict";
import { PinLooks, type PinLooksDeps } from "../../../../src/cache/pinned/pin_looks.ts";
import type { WorkLease } from "../../../../src/locks/leases.ts";
import { NO_OTHER_MEMBERS } from "../../../../src/locks/work_leases.ts";
import type { NarName } from "../../../../src/nix/nar_name.ts";
import type { StorePathHash } from "../../../../src/nix/store_path.ts";
import { clock, playRuntime } from "../../../../src/runtime/current.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { isPresent, RecentProblems } from "../../../../src/telemetry/recent_problems.ts";
import { asOwner, VirtualClock } from "../../../simulation/virtual_clock.ts";
import { MemoryMetadataStore } from "../../../support/memory_metadata_store.ts";
import { changesOf, hashOfNode } from "../../../support/stored_graph.ts";

const HOUR_MS = 3_600_000;
const ROOT = hashOfNode(2);

/** Three kept paths below one root, and a larder whose hours are milliseconds. */
async function scene() {
  const metadata = new MemoryMetadataStore();
  await metadata.apply(changesOf([
    { references: [0], nar: 0 },
    { references: [0], nar: 1 },
    { references: [1, 0], nar: 2 },
  ]));
  const lines: string[] = [];
  const problems = new RecentProblems(() => clock.wallMs());
  const log = problems.watch(createLogger("info", { write: (line) => void lines.push(line) }));
  const state = {
    gone: new Set<string>(),
    opened: 0,
    asked: [] as StorePathHash[],
    lease: "ours" as WorkLease["kind"],
    isStoreAway: false,
    counts: 0,
    counted: 0,
    ...{ looked: 0, listed: 0 },
    /** Further paths of the closure, which are not here. */
    further: 0,
    /** So long take an upstream for an answer, the storage to open a file, and a list of paths. */
    ...{ answerMs: 0, openMs: 0, listMs: 0 },
  };
  const deps: PinLooksDeps = {
    metadata,
    closures: {
      async paths() {
        state.listed++;
        if (state.listMs > 0) await clock.pause(state.listMs);
        const here = [2, 1, 0].map((node) => ({ storePathHash: hashOfNode(node), isKept: true }));
        return [
          ...here,
          ...Array.from({ length: state.further }, (_, at) => (
            { storePathHash: hashOfNode(1_000 + at), isKept: false }
          )),
        ];
      },
    },
    counts: {
      readLost: () => Promise.resolve(),
      async closures() {
        state.counts++;
        const { counted: missing } = state;
        const counted = { stored: 3, missing, bytes: 0, ownBytes: 0, name: null, pinnedAt: "" };
        return [{ ...counted, root: ROOT, keepComplete: false, complete: null, look: null }];
      },
    },
    kept: {
      async find({ name, kept }) {
        if (state.isStoreAway) throw new Error("the store is away");
        if (state.openMs > 0) await clock.pause(state.openMs);
        state.opened++;
        if (kept === undefined || state.gone.has(name)) return undefined;
        return { kept, stored: { async [Symbol.asyncDispose]() {} } as never };
      },
      verify: () => Promise.resolve(undefined),
    },
    narinfoFetches: { fetch: () => Promise.reject(new Error("not fetched")) },
    downloads: {
      join: () => {
        throw new Error("not fetched");
      },
    },
    pool: {
      statuses: () => [{ url: "http://u", isUp: true, sendsNars: true, priority: 1 }],
      hasQueue: () => false,
      async prefetchNarinfo(storePathHash) {
        state.asked.push(storePathHash);
        if (state.answerMs > 0) await clock.pause(state.answerMs);
        return { kind: "absent" };
      },
    },
    nameOf: (path) =>
      Promise.resolve(`name-${[0, 1, 2].find((node) => hashOfNode(node) === path)}`),
    leases: {
      async pinLook() {
        const lease = await NO_OTHER_MEMBERS.pinLook();
        return { ...lease, kind: state.lease, [Symbol.asyncDispose]: async () => undefined };
      },
    },
    looked: () => void state.looked++,
    nowMs: () => clock.wallMs(),
    log,
  };
  const looks = new PinLooks(deps);
  const pin = { storePathHash: ROOT, pinnedAtMs: clock.wallMs() };
  await metadata.apply([{ kind: "put-pin", pin }]);
  const look = async () => (await metadata.findPin(ROOT))?.look;
  const narOf = async (node: number) => (await metadata.findNarinfo(hashOfNode(node)))?.narName;
  return { metadata, state, deps, looks, problems, look, narOf, lines };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** Plays a test on virtual time. */
function playTest(name: string, play: (scene: Scene) => Promise<void>): void {
  Deno.test(name, async () => {
    const played = new VirtualClock();
    using _runtime = playRuntime({ clock: played });
    const run = async () => {
      const parts = await scene();
      await using _looks = parts.looks;
      await play(parts);
    };
    await asOwner(undefined, () => played.play(run(), 100 * HOUR_MS));
  });
}

playTest(
  "pin looks: a new pin has its turn within a minute, then each night at three",
  async (parts) => {
    await clock.pause(61_000);
    const first = await parts.look();
    assert.deepEqual([first?.paths, first?.missing], [3, 0]);
    assert.ok(first?.completeAtMs === first?.atMs);
    const times = new Set<number>();
    for (let hour = 0; hour < 72; hour++) {
      await clock.pause(HOUR_MS);
      times.add((await parts.look())?.atMs ?? 0);
    }
    times.delete(first?.atMs ?? 0);
    assert.equal(times.size, 3, "three nights");
    for (const atMs of times) {
      const date = new Date(atMs);
      assert.deepEqual([date.getHours(), date.getMinutes()], [3, 0]);
    }
    assert.equal(parts.state.opened, 12, "each file is opened once a look");
  },
);

playTest(
  "pin looks: the problem begins with the look, and ends with the next whole one",
  async (parts) => {
    const { state, problems } = parts;
    await clock.pause(61_000);
    assert.deepEqual(problems.list(), []);
    state.gone.add(await parts.narOf(0) ?? "");
    await clock.pause(24 * HOUR_MS);
    const [problem] = problems.list();
    assert.equal(problem?.message, "pinned closure is incomplete");
    const { atMs = 0 } = await parts.look() ?? {};
    assert.equal(problem?.begunAtMs, atMs);
    const { name, paths, missing, hint } = problem?.facts ?? {};
    assert.deepEqual([name, paths, missing], ["name-2", "name-0", 1]);
    assert.match(String(hint), /no upstream has 1 of them: push them again/);
    assert.deepEqual(state.asked, [hashOfNode(0)], "the upstream is asked for it once");

    state.gone.clear();
    await clock.pause(24 * HOUR_MS);
    const [ended, ...others] = problems.list();
    assert.deepEqual(others, [], "one outage is one problem");
    assert.equal(ended?.overAtMs, (await parts.look())?.atMs);
    assert.equal(ended?.count, 1);
  },
);

playTest(
  "pin looks: what the rows lose is looked at within ten minutes, not by night",
  async (parts) => {
    const { state } = parts;
    await clock.pause(61_000);
    const first = await parts.look();
    state.gone.add(await parts.narOf(1) ?? "");
    state.counted = 1;
    await clock.pause(11 * 60_000);
    const { atMs = 0, missing } = await parts.look() ?? {};
    assert.equal(missing, 1);
    assert.ok(atMs - (first?.atMs ?? 0) <= 10 * 60_000);
    assert.equal(parts.problems.list()[0]?.overAtMs, undefined);
    const { counts } = state;
    await clock.pause(60 * 60_000);
    assert.ok(state.counts - counts <= 6, "a count costs seconds: one in ten minutes");
  },
);

playTest(
  "pin looks: while another member looks, its notes are this one's problem",
  async (parts) => {
    const { metadata, state, problems } = parts;
    state.lease = "theirs";
    await clock.pause(5 * 60_000);
    assert.equal(state.opened, 0);
    const look = {
      atMs: clock.wallMs(),
      paths: 3,
      missing: 1,
      upstream: 1,
      nowhere: 0,
      unasked: 0,
    };
    const more = { uncounted: 0, completeAtMs: 1, examples: ["libc-2"] };
    await metadata.notePin(ROOT, { look: { ...look, ...more } });
    await clock.pause(61_000);
    const [problem] = problems.list();
    assert.match(String(problem?.facts["hint"]), /larder pin --keep-complete/);
    await metadata.notePin(ROOT, { look: { ...look, ...more, missing: 0, upstream: 0 } });
    await clock.pause(61_000);
    assert.notEqual(problems.list()[0]?.overAtMs, undefined);
  },
);

playTest("pin looks: a store that does not answer says nothing of a pin", async (parts) => {
  const { state, problems } = parts;
  await clock.pause(61_000);
  const before = await parts.look();
  state.isStoreAway = true;
  await clock.pause(24 * HOUR_MS);
  assert.deepEqual(await parts.look(), before);
  assert.deepEqual(problems.list(), []);
  state.isStoreAway = false;
  await clock.pause(11 * 60_000);
  assert.notDeepEqual(await parts.look(), before, "it looks again soon");
});

playTest("pin looks: upstreams are asked for every missing path, however many", async (parts) => {
  const { state } = parts;
  state.further = 5_000;
  await clock.pause(61_000);
  const { missing, nowhere, unasked } = await parts.look() ?? {};
  assert.deepEqual([missing, nowhere, unasked], [5_000, 5_000, undefined]);
  assert.equal(new Set(state.asked).size, 5_000);
});

playTest(
  "pin looks: what slow upstreams leave no time to ask for is not asked yet",
  async (parts) => {
    const { state } = parts;
    state.further = 5_000;
    state.answerMs = 30_000;
    await clock.pause(12 * 60_000);
    const { missing, nowhere, unasked } = await parts.look() ?? {};
    // Four at a time for ten minutes.
    assert.deepEqual([missing, nowhere, unasked], [5_000, 80, 4_920]);
    assert.equal(state.asked.length, 80);
  },
);

/** A night after which one path is lost, and the pin incomplete. */
async function loseOne({ state, narOf }: Scene) {
  await clock.pause(61_000);
  const nar = await narOf(0) ?? ("" as NarName);
  state.gone.add(nar);
  await clock.pause(24 * HOUR_MS);
  return { storePaths: [], nars: [nar] };
}

playTest(
  "pin looks: a lost file that is stored again ends the problem in seconds, and asks nobody",
  async (parts) => {
    const { state, problems, looks } = parts;
    const stored = await loseOne(parts);
    const { lost, missing } = await parts.look() ?? {};
    assert.deepEqual([missing, lost], [1, [hashOfNode(0)]]);
    const { opened, asked: { length: asked } } = state;

    state.gone.clear();
    looks.arrived(stored);
    await clock.pause(3_000);
    const look = await parts.look();
    assert.deepEqual([look?.missing, look?.lost], [0, undefined]);
    assert.equal(look?.completeAtMs, look?.atMs);
    assert.equal(problems.list()[0]?.overAtMs, look?.atMs);
    assert.equal(state.opened - opened, 1, "the lost one alone");
    assert.equal(state.asked.length, asked);
    assert.equal(state.looked, 3, "each look is told");
  },
);

playTest(
  "pin looks: whatever else arrives costs no look, and what arrives changes nothing writes none",
  async (parts) => {
    const { state, looks } = parts;
    const stored = await loseOne(parts);
    const { listed, looked } = state;
    for (let count = 0; count < 100; count++) {
      const other = hashOfNode(count + 10);
      looks.arrived({ storePaths: [other], nars: [`${other}.nar` as NarName] });
      await clock.pause(100);
    }
    assert.equal(state.listed, listed);
    looks.arrived(stored);
    await clock.pause(3_000);
    assert.deepEqual([state.listed - listed, state.looked - looked], [1, 0], "it is still lost");
  },
);

playTest("pin looks: a path that arrives while a look asks is not overlooked", async (parts) => {
  const { state, looks, narOf } = parts;
  await clock.pause(61_000);
  const nar = await narOf(0) ?? ("" as NarName);
  state.gone.add(nar);
  state.answerMs = 60_000;
  looks.want(ROOT);
  await clock.pause(30_000);
  state.gone.clear();
  looks.arrived({ storePaths: [], nars: [nar] });
  await clock.pause(29_000);
  assert.equal((await parts.look())?.missing, 0, "it is the look before");
  await clock.pause(5_000);
  const look = await parts.look();
  assert.deepEqual([look?.missing, look?.nowhere], [0, 0]);
  assert.equal(parts.problems.list()[0]?.overAtMs, look?.atMs);
});

playTest(
  "pin looks: what an arrival reveals is not asked yet, until the next count of the rows",
  async (parts) => {
    const { state, looks } = parts;
    state.further = 1;
    await clock.pause(61_000);
    assert.deepEqual((await parts.look())?.nowhere, 1);
    const { asked: { length: asked } } = state;
    state.further = 3;
    state.counted = 1;
    looks.arrived({ storePaths: [hashOfNode(1_000)], nars: [] });
    await clock.pause(3_000);
    const { missing, nowhere, unasked } = await parts.look() ?? {};
    assert.deepEqual([missing, nowhere, unasked], [3, 1, 2]);
    assert.equal(state.asked.length, asked);
    state.counted = 3;
    await clock.pause(11 * 60_000);
    const later = await parts.look();
    assert.deepEqual([later?.missing, later?.nowhere, later?.unasked], [3, 3, undefined]);
  },
);

playTest(
  "pin looks: a kept file that is found lost is a problem within seconds, while it is",
  async (parts) => {
    const { state, problems, looks } = parts;
    await clock.pause(61_000);
    const nar = await parts.narOf(0) ?? ("" as NarName);
    const { opened, asked: { length: asked } } = state;
    state.gone.add(nar);
    looks.lost(nar);
    await clock.pause(3_000);
    const { missing, unasked, lost } = await parts.look() ?? {};
    assert.deepEqual([missing, unasked, lost], [1, 1, [hashOfNode(0)]]);
    assert.deepEqual([state.opened - opened, state.asked.length], [1, asked], "the lost one alone");
    for (let hour = 0; hour < 3; hour++) {
      assert.ok(problems.list().every((one) => isPresent(one, clock.wallMs())));
      assert.deepEqual(problems.list().length, 1);
      await clock.pause(HOUR_MS);
    }
    assert.equal((await parts.look())?.nowhere, 1, "the next look by the rows asks");
    const { listed } = state;
    looks.lost(nar);
    await clock.pause(3_000);
    assert.equal(state.listed, listed, "the last look knows it");
  },
);

playTest(
  "pin looks: a loss, a return and a pin are looked at seconds after another member's look",
  async (parts) => {
    const { state, looks, metadata } = parts;
    await clock.pause(61_000);
    const nar = await parts.narOf(0) ?? ("" as NarName);
    const theirs = async (change: () => void) => {
      state.lease = "theirs";
      const { opened, looked } = state;
      change();
      await clock.pause(40_000);
      assert.deepEqual([state.opened, state.looked], [opened, looked], "the other one looks");
      state.lease = "ours";
      await clock.pause(3_000);
    };
    await theirs(() => {
      state.gone.add(nar);
      looks.lost(nar);
    });
    assert.deepEqual((await parts.look())?.lost, [hashOfNode(0)]);
    assert.equal(parts.problems.list()[0]?.overAtMs, undefined);
    await theirs(() => {
      state.gone.clear();
      looks.arrived({ storePaths: [], nars: [nar] });
    });
    assert.equal((await parts.look())?.missing, 0);
    const other = { storePathHash: hashOfNode(1), pinnedAtMs: clock.wallMs() };
    await metadata.apply([{ kind: "put-pin", pin: other }]);
    await theirs(() => looks.want(hashOfNode(1)));
    assert.equal((await metadata.findPin(hashOfNode(1)))?.look?.missing, 0);
  },
);

playTest(
  "pin looks: a loss and a return are every member's problem and its end within seconds",
  async (parts) => {
    const { state, looks, deps, problems } = parts;
    const theirs = new RecentProblems(() => clock.wallMs());
    const refused = { ...await NO_OTHER_MEMBERS.pinLook(), kind: "theirs" as const };
    await using _other = new PinLooks({
      ...deps,
      log: theirs.watch(deps.log),
      leases: { pinLook: () => Promise.resolve(refused) },
    });
    await clock.pause(61_000);
    const nar = await parts.narOf(0) ?? ("" as NarName);
    for (let count = 0; count < 3; count++) {
      state.gone.add(nar);
      looks.lost(nar);
      await clock.pause(8_000);
      for (const all of [problems, theirs]) {
        assert.deepEqual(all.list().map(({ message, overAtMs }) => [message, overAtMs]), [
          ["pinned closure is incomplete", undefined],
        ]);
      }
      state.gone.clear();
      looks.arrived({ storePaths: [], nars: [nar] });
      await clock.pause(8_000);
      for (const all of [problems, theirs]) assert.notEqual(all.list()[0]?.overAtMs, undefined);
    }
  },
);

playTest(
  "pin looks: rows and names that a later judgement overtook begin no problem",
  async (parts) => {
    const { metadata } = parts;
    await clock.pause(61_000);
    const before = await parts.look();
    assert.ok(before);
    await parts.looks[Symbol.asyncDispose]();
    let slowMs = 0;
    const slow = async <Result>(answer: Promise<Result>) => {
      const ms = slowMs;
      const result = await answer;
      await clock.pause(ms);
      return result;
    };
    const rows = { ...parts.deps.metadata, pins: () => slow(metadata.pins()) };
    const nameOf: PinLooksDeps["nameOf"] = (path) => slow(parts.deps.nameOf(path));
    for (const late of [{ metadata: rows }, { nameOf }]) {
      const problems = new RecentProblems(() => clock.wallMs());
      await using looks = new PinLooks({
        ...parts.deps,
        ...late,
        log: problems.watch(parts.deps.log),
      });
      slowMs = 2_000;
      await metadata.notePin(ROOT, { look: { ...before, missing: 1 } });
      const first = looks.judge();
      await clock.pause(1);
      slowMs = 0;
      await metadata.notePin(ROOT, { look: before });
      await looks.judge();
      await first;
      assert.deepEqual(problems.list().filter((one) => isPresent(one, clock.wallMs())), []);
    }
  },
);

playTest("pin looks: a look that another member makes for long costs no turns", async (parts) => {
  const { state, metadata } = parts;
  state.lease = "theirs";
  const pins = metadata.pins.bind(metadata);
  let reads = 0;
  metadata.pins = () => (reads++, pins());
  await clock.pause(10 * 60_000);
  // Each judgement reads them, every five seconds; a turn each second would read 1,200 times.
  assert.ok(reads <= 21 + 120, `${reads} reads of the pins in ten minutes`);
});

playTest(
  "pin looks: a kept file that is found lost is fetched at once for a pin that stays complete",
  async (parts) => {
    const { metadata, state, problems, deps } = parts;
    await parts.looks[Symbol.asyncDispose]();
    const fetched: NarName[] = [];
    const downloads = {
      join: ({ name }: { readonly name: NarName }) => {
        fetched.push(name);
        const ended = async () => {
          await clock.pause(60_000);
          state.gone.delete(name);
        };
        return { download: { ended, state: { state: "kept" } } };
      },
    } as unknown as PinLooksDeps["downloads"];
    await using looks = new PinLooks({ ...deps, downloads });
    await metadata.notePin(ROOT, { keepComplete: true });
    await clock.pause(61_000);
    const nar = await parts.narOf(0) ?? ("" as NarName);
    state.gone.add(nar);
    looks.lost(nar);
    await clock.pause(30_000);
    assert.equal((await parts.look())?.missing, 1, "it says so until it is here");
    assert.equal(problems.list()[0]?.overAtMs, undefined);
    await clock.pause(40_000);
    assert.deepEqual([(await parts.look())?.missing, fetched], [0, [nar]]);
    assert.notEqual(problems.list()[0]?.overAtMs, undefined);
    state.gone.add(nar);
    looks.lost(nar);
    await clock.pause(3_000);
    assert.equal((await parts.look())?.missing, 1, "the time of a fetch delays no look");
  },
);

playTest(
  "pin looks: a count that contradicts the last look leads to a look at once, once a minute",
  async (parts) => {
    const { state, looks } = parts;
    await clock.pause(61_000);
    const { opened } = state;
    const lookedAt = { paths: 3, missing: 0, upstream: 0, nowhere: 0, at: "", examples: [] };
    const count = { root: ROOT, missing: 1, look: lookedAt };
    looks.counted([{ ...count, missing: 0 }, { ...count, look: { ...lookedAt, missing: 1 } }]);
    await clock.pause(1_000);
    assert.equal(state.opened, opened);
    state.gone.add(await parts.narOf(0) ?? "");
    for (let second = 0; second < 30; second++) {
      looks.counted([count]);
      await clock.pause(1_000);
    }
    assert.equal((await parts.look())?.missing, 1);
    assert.equal(state.opened - opened, 3, "each file once");
    assert.equal(parts.problems.list()[0]?.overAtMs, undefined);
  },
);

playTest("pin looks: looks at what is lost take a tenth of the time", async (parts) => {
  const { state, looks } = parts;
  await clock.pause(61_000);
  state.listMs = 2_000;
  const { listed } = state;
  for (let count = 0; count < 600; count++) {
    looks.lost(await parts.narOf(count % 3) ?? ("" as NarName));
    await clock.pause(100);
  }
  assert.ok(state.listed - listed <= 4, `${state.listed - listed} in a minute`);
});

playTest("pin looks: the problem is there again seconds after a restart", async (parts) => {
  await loseOne(parts);
  await parts.looks[Symbol.asyncDispose]();
  const { opened } = parts.state;
  const problems = new RecentProblems(() => clock.wallMs());
  await using _next = new PinLooks({ ...parts.deps, log: problems.watch(parts.deps.log) });
  await clock.pause(5_000);
  assert.equal(problems.list().filter((one) => isPresent(one, clock.wallMs())).length, 1);
  assert.equal(parts.state.opened, opened, "it looks at no file for that");
});

playTest(
  "pin looks: another process learns what is missing, and then sees it arrive",
  async (parts) => {
    const { state, deps } = parts;
    const stored = await loseOne(parts);
    await parts.looks[Symbol.asyncDispose]();
    await using next = new PinLooks(deps);
    const [before, { opened, asked: { length: asked } }] = [await parts.look(), state];
    await clock.pause(61_000);
    assert.deepEqual(await parts.look(), before);
    assert.deepEqual([state.opened - opened, state.asked.length], [1, asked]);
    state.gone.clear();
    next.arrived(stored);
    await clock.pause(3_000);
    assert.equal((await parts.look())?.missing, 0);
    state.gone.add(stored.nars[0] ?? "");
    await clock.pause(24 * HOUR_MS);
    state.gone.clear();
    next.arrived("all");
    await clock.pause(61_000);
    assert.equal((await parts.look())?.missing, 0, "another process wrote, and does not say what");
  },
);

playTest("pin looks: looks at what arrives take a tenth of the time", async (parts) => {
  const { state, looks } = parts;
  state.further = 1;
  await clock.pause(61_000);
  state.listMs = 2_000;
  const { listed } = state;
  for (let count = 0; count < 600; count++) {
    looks.arrived({ storePaths: [hashOfNode(1_000)], nars: [] });
    await clock.pause(100);
  }
  assert.ok(state.listed - listed <= 4, `${state.listed - listed} in a minute`);
});

playTest("pin looks: three members share one look of a night", async (parts) => {
  const { state, deps } = parts;
  state.openMs = 1_000;
  const turn = { ends: Promise.resolve() };
  // Each waits for its turn, as with a lock whose holder is quick.
  const leases: PinLooksDeps["leases"] = {
    async pinLook() {
      const before = turn.ends;
      const { promise, resolve } = Promise.withResolvers<void>();
      turn.ends = promise;
      await before;
      const lease = await NO_OTHER_MEMBERS.pinLook();
      return { ...lease, [Symbol.asyncDispose]: () => Promise.resolve(resolve()) };
    },
  };
  await parts.looks[Symbol.asyncDispose]();
  await using _one = new PinLooks({ ...deps, leases });
  await using _two = new PinLooks({ ...deps, leases });
  await using _three = new PinLooks({ ...deps, leases });
  await clock.pause(90_000);
  assert.equal(state.opened, 3, "each file once");
  await clock.pause(24 * HOUR_MS);
  assert.equal(state.opened, 6);
});
