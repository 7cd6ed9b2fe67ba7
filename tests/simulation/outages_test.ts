import assert from "node:assert/strict";
import { COUNTERS } from "../../src/telemetry/instruments/counters.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { PlayedLocks } from "./played_locks.ts";
import { PlayedPostgres, type PostgresFault } from "./played_postgres.ts";
import { inChunks, inOrder, playScene, rewritten, type Scene, type SceneOptions } from "./scene.ts";
import { type PlayedOutages, STORAGE } from "./world_member.ts";
import { UPSTREAM_FAULTS } from "./world_upstream.ts";

/** All must be well so long after the end of an outage, without a request. */
const MENDED_WITHIN_MS = 10_000;
/** Its clients see what it counts. */
const CLIENTS_MEMBER = "larder";
/** Objects without a row go so long after it. */
const SETTLED_WITHIN_MS = 60_000;
/** A blink, a restart, a timeout, a reboot. */
const LENGTHS_MS = [100, 2_500, 12_000, 120_000];
const objects = Array.from({ length: 60 }, (_, seed) => (
  makeStoreObject({ name: `thing-${seed}`, size: 2_000 * (seed % 7 + 1), seed })
));
/** So often a client asks in close succession: throughout all outages but the longest. */
const OFTEN_TURNS = 20;
/** How often the verdict is read behind an outage. */
const LOOK_EVERY_MS = 1_000;
const CAPACITY_BYTES = 1e12;
const BIG = makeStoreObject({ name: "big", size: 1_000_000 });
/** Small enough that reservations need the ledger; all objects fit. */
const SMALL_LIMIT_BYTES = 2e6;
/** A slow upstream of the world answers within this. */
const SLOW_MAX_MS = 12_000;

/** Reasons of `larder_nar_not_kept_total`. */
const NOT_KEPT = COUNTERS.nar_not_kept_total.labels.reason;
type NotKept = typeof NOT_KEPT[number];

/** A kind of outage: how it begins and how it ends. */
interface Kind {
  readonly begin: (scene: Scene) => void;
  readonly end: (scene: Scene) => void;
  readonly options?: Partial<SceneOptions>;
  /** The reason that is counted for NARs that were not kept. Default: none. */
  readonly notKept?: NotKept;
  /** Of an upstream: how long answers from within the outage may still come behind its end. */
  readonly trailMs?: number;
}

function upstreamKind(fault: typeof UPSTREAM_FAULTS[number], count: number): Kind {
  const set = (scene: Scene, to?: typeof fault) => {
    const [upstream] = scene.upstreams;
    if (upstream !== undefined) upstream.fault = to;
  };
  return {
    begin: (scene) => set(scene, fault),
    end: (scene) => set(scene),
    trailMs: fault === "slow" ? SLOW_MAX_MS : 0,
    options: { upstreams: Array.from({ length: count }, () => ({})) },
  };
}

function outagesKind(
  outage: PlayedOutages,
  notKept?: NotKept,
  hasSmallLimit = outage.database !== undefined,
): Kind {
  const outages: PlayedOutages = {};
  return {
    ...notKept && { notKept },
    options: { outages, limitBytes: hasSmallLimit ? SMALL_LIMIT_BYTES : 1e9 },
    begin: () => void Object.assign(outages, outage),
    end() {
      outages.database = undefined;
      outages.store = undefined;
    },
  };
}

function postgresKind(fault: PostgresFault, member?: string): Kind {
  const postgres = new PlayedPostgres();
  return {
    ...(member ?? CLIENTS_MEMBER) === CLIENTS_MEMBER && { notKept: "database_error" },
    options: { outages: { postgres }, limitBytes: SMALL_LIMIT_BYTES },
    begin: () => postgres.begin(fault, member),
    end: () => postgres.end(),
  };
}

const locks = new PlayedLocks();
const ALL = ["open", "put", "remove", "list"] as const;

const KINDS: Readonly<Record<string, () => Kind>> = {
  ...Object.fromEntries(UPSTREAM_FAULTS.flatMap((fault) =>
    [1, 2].map((count) => [
      `one of ${count} upstreams: ${fault}`,
      () => upstreamKind(fault, count),
    ])
  )),
  "the disk is full": () => ({
    begin: (scene) => void (scene.files.capacityBytes = scene.files.bytesBelow(STORAGE) + 5_000),
    end: (scene) => void (scene.files.capacityBytes = CAPACITY_BYTES),
    notKept: "disk_error",
  }),
  "the database is locked": () =>
    outagesKind(
      { database: { error: "database is locked", ofReads: false } },
      "database_error",
    ),
  "the database's disk is full": () =>
    outagesKind(
      { database: { error: "database or disk is full", ofReads: false } },
      "disk_error",
    ),
  // Nobody gets a NAR whose row cannot be read.
  "the database fails": () => outagesKind({ database: { error: "disk I/O error", ofReads: true } }),
  "the database breaks off behind a commit": () => postgresKind("breaking"),
  "the database hangs": () => postgresKind("hanging"),
  "the database hangs for one that clients use": () => postgresKind("hanging", CLIENTS_MEMBER),
  "the database hangs for another one": () => postgresKind("hanging", "larder-2"),
  "the store refuses": () =>
    outagesKind(
      { store: { operations: ALL, afterMs: 5 } },
      "storage_error",
    ),
  "the store refuses, near the limit": () =>
    outagesKind({ store: { operations: ALL, afterMs: 5 } }, "storage_error", true),
  "the store is silent": () =>
    outagesKind(
      { store: { operations: ALL, afterMs: 5_000 } },
      "storage_error",
    ),
  "the store takes nothing": () =>
    outagesKind(
      { store: { operations: ["put"], afterMs: 5 } },
      "storage_error",
    ),
  "the store removes nothing": () =>
    outagesKind(
      { store: { operations: ["remove", "put"], afterMs: 5 } },
      "storage_error",
    ),
  "the store lists nothing": () => outagesKind({ store: { operations: ["list"], afterMs: 5 } }),
  "the locks are away": () => ({
    begin: () => void (locks.isAway = true),
    end: () => void (locks.isAway = false),
    options: { locks },
  }),
};

for (const [name, kindOf] of Object.entries(KINDS)) {
  // Of several upstreams, members see what one sees.
  for (const memberCount of countsOf(name)) {
    const scene = memberCount === 1 ? name : `${name}, of three members`;
    Deno.test(`outages: ${scene}, for however long: all is well ten seconds later`, async () => {
      for (const lengthMs of LENGTHS_MS) {
        const kind = kindOf();
        const options = { upstreams: [{}], takesUploads: true, negativeTtlMs: 0, ...kind.options };
        const shared = memberCount === 1 ? {} : { locks, memberCount };
        await playScene(
          { ...options, ...shared, objects },
          (scene) => play(scene, kind, lengthMs),
        );
      }
    });
  }
}

/** Numbers of members for which a kind plays. */
function countsOf(name: string): readonly number[] {
  if (/^one of 2|limit$/.test(name)) return [1];
  return / for | another /.test(name) ? [3] : [1, 3];
}

/** An outage of that length under traffic, then silence. */
async function play(
  scene: Scene,
  { begin, end, trailMs, notKept }: Kind,
  lengthMs: number,
): Promise<void> {
  const about = `${lengthMs} ms`;
  for (const object of objects.slice(0, 10)) await scene.nar(object);
  // Their NARs come within the outage.
  for (const object of objects.slice(20, 50)) await scene.narinfo(object);
  await scene.pause(30_000);
  for (const member of scene.members) {
    assert.deepEqual(await faults(scene, member), [], `${about}: all is well before`);
  }
  begin(scene);
  const clients = new AbortController();
  const gone = Array.from({ length: 3 }, (_, at) => client(scene, at, clients.signal));
  await scene.pause(lengthMs);
  const during = await Promise.all(scene.members.map((member) => faults(scene, member)));
  clients.abort(new TypeError("left"));
  end(scene);
  for (const seen of during) assert.ok(seen.length <= 1, `${about}: one problem: ${seen}`);
  for (let leftMs = (trailMs ?? 0) + MENDED_WITHIN_MS; leftMs > 0; leftMs -= LOOK_EVERY_MS) {
    // An upstream comes back in steps: its narinfos, its NARs, its speed.
    if (trailMs === undefined) await checkOneProblem(scene, during, about);
    await scene.pause(Math.min(leftMs, LOOK_EVERY_MS));
  }
  for (const [at, member] of scene.members.entries()) {
    const after = await faults(scene, member);
    assert.deepEqual(after, [], `${about}: all is well with ${member} after ${during[at]}`);
  }
  await Promise.all(gone);
  await checkStorage(scene, about);
  const counted = NOT_KEPT.filter((reason) => (
    scene.metrics.value("nar_not_kept_total", { reason }) > 0
  ));
  // In a short outage nothing may have had to be kept.
  const isShort = lengthMs < Math.max(...LENGTHS_MS) && counted.length === 0;
  const expected = notKept === undefined || isShort ? [] : [notKept];
  assert.deepEqual(counted, expected, `${about}: NARs were not kept for that alone`);
}

/** Before it, other files have been deleted: as much is free as a file had when it did not fit. */
for (const [announced, nar] of Object.entries({ "its length": [], "no length": [inChunks] })) {
  Deno.test(`outages: a full disk stays one problem for a file with ${announced}`, async () => {
    const withoutSize = rewritten((lines) => lines.replace(/^File(Size|Hash): .*\n/gm, ""));
    const upstream = { compression: "xz", narinfo: withoutSize, nar: inOrder(...nar) } as const;
    await playScene({ objects: [BIG], upstreams: [upstream] }, async (scene) => {
      scene.files.capacityBytes = scene.files.bytesBelow(STORAGE) + 600_000;
      for (let turn = 0; turn < 12; turn++) {
        assert.equal((await scene.nar(BIG)).isWhole, true);
        await scene.pause(10_000);
      }
      assert.equal(scene.logged("nars cannot be kept: they pass through").length, 1);
      scene.files.capacityBytes = CAPACITY_BYTES;
      await scene.pause(MENDED_WITHIN_MS);
      assert.deepEqual(await faults(scene, CLIENTS_MEMBER), []);
    });
  });
}

/** Each member has one problem at most, with the title that it had `during` the outage. */
async function checkOneProblem(
  scene: Scene,
  during: readonly (readonly string[])[],
  about: string,
): Promise<void> {
  for (const [at, member] of scene.members.entries()) {
    const seen = [...during[at] ?? [], ...await faults(scene, member)];
    const titles = new Set(
      seen.map((fault) => fault.replace(/ \(.*|, since .*|: no report for .*/, "")),
    );
    assert.ok(titles.size <= 1, `${about}: one outage is one problem of ${member}: ${seen}`);
  }
}

/** A minute later nothing of the outage is left: rows and objects agree. */
async function checkStorage(scene: Scene, about: string): Promise<void> {
  await scene.pause(SETTLED_WITHIN_MS);
  assert.deepEqual(await scene.fsck(), [], `${about}: rows and objects agree`);
  const pending = scene.database.prepare("SELECT * FROM pending_file").all();
  assert.deepEqual(pending, [], `${about}: no mark and no intent is left`);
}

/** Requests paths, some of them stored, until it leaves. */
async function client(scene: Scene, at: number, signal: AbortSignal): Promise<void> {
  for (let turn = at * 20; !signal.aborted && turn < at * 20 + 400; turn++) {
    const object = objects[turn % objects.length];
    if (object === undefined) return;
    try {
      const narinfo = await scene.request("GET", `/${object.storePathHash}.narinfo`, {}, signal);
      const path = /^URL: (.*)$/m.exec(new TextDecoder().decode(narinfo.bytes))?.[1];
      if (path !== undefined) await scene.request("GET", `/${path}`, {}, signal);
    } catch {
      // It left.
    }
    // In a long outage, more of the same finds nothing more.
    await scene.pause(turn - at * 20 < OFTEN_TURNS ? 700 : 3_000);
  }
}

/** The faults in the verdict of the status page. */
async function faults(scene: Scene, member: string): Promise<readonly string[]> {
  const { bytes } = await scene.request("GET", "/stats", {}, undefined, member);
  const { verdict } = JSON.parse(new TextDecoder().decode(bytes));
  return verdict.faults.map(({ text }: { text: string }) => text);
}
