import assert from "node:assert/strict";
import { COUNTERS } from "../../src/telemetry/instruments/counters.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { PlayedLocks } from "./played_locks.ts";
import { playScene, type Scene, type SceneOptions } from "./scene.ts";
import { type PlayedOutages, STORAGE } from "./world_member.ts";
import { UPSTREAM_FAULTS } from "./world_upstream.ts";

/** All must be well so long after the end of an outage, without a request. */
const MENDED_WITHIN_MS = 10_000;
/** A blink, a restart, a timeout, a reboot. */
const LENGTHS_MS = [100, 2_500, 12_000, 120_000];
const objects = Array.from({ length: 60 }, (_, seed) => (
  makeStoreObject({ name: `thing-${seed}`, size: 2_000 * (seed % 7 + 1), seed })
));
const CAPACITY_BYTES = 1e12;
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
  /** How long answers from within the outage may still come behind its end. Default: none do. */
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

function outagesKind(outage: PlayedOutages, notKept?: NotKept): Kind {
  const outages: PlayedOutages = {};
  return {
    ...notKept && { notKept },
    options: { outages, limitBytes: SMALL_LIMIT_BYTES },
    begin: () => void Object.assign(outages, outage),
    end() {
      outages.database = undefined;
      outages.store = undefined;
    },
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
  "the store refuses": () =>
    outagesKind(
      { store: { operations: ALL, afterMs: 5 } },
      "storage_error",
    ),
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
  Deno.test(`outages: ${name}, for however long: all is well ten seconds later`, async () => {
    for (const lengthMs of LENGTHS_MS) {
      const kind = kindOf();
      const options = { upstreams: [{}], takesUploads: true, negativeTtlMs: 0, ...kind.options };
      await playScene(
        { ...options, objects },
        (scene) => play(scene, kind, lengthMs),
      );
    }
  });
}

/** An outage of that length under traffic, then silence. */
async function play(
  scene: Scene,
  { begin, end, trailMs = 0, notKept }: Kind,
  lengthMs: number,
): Promise<void> {
  const about = `${lengthMs} ms`;
  for (const object of objects.slice(0, 10)) await scene.nar(object);
  // Their NARs come within the outage.
  for (const object of objects.slice(20, 50)) await scene.narinfo(object);
  await scene.pause(30_000);
  assert.deepEqual(await faults(scene), [], `${about}: all is well before`);
  begin(scene);
  const clients = new AbortController();
  const gone = Array.from({ length: 3 }, (_, at) => client(scene, at, clients.signal));
  await scene.pause(lengthMs);
  const during = await faults(scene);
  clients.abort(new TypeError("left"));
  end(scene);
  await scene.pause(trailMs + MENDED_WITHIN_MS);
  const after = await faults(scene);
  assert.deepEqual(after, [], `${about}: all is well after ${during}`);
  assert.ok(during.length <= 1, `${about}: one outage is one problem: ${during}`);
  await Promise.all(gone);
  const counted = NOT_KEPT.filter((reason) => (
    scene.metrics.value("nar_not_kept_total", { reason }) > 0
  ));
  // In a short outage nothing may have had to be kept.
  const isShort = lengthMs < Math.max(...LENGTHS_MS) && counted.length === 0;
  const expected = notKept === undefined || isShort ? [] : [notKept];
  assert.deepEqual(counted, expected, `${about}: NARs were not kept for that alone`);
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
    await scene.pause(700);
  }
}

/** The faults in the verdict of the status page. */
async function faults(scene: Scene): Promise<readonly string[]> {
  const { bytes } = await scene.get("/stats");
  const { verdict } = JSON.parse(new TextDecoder().decode(bytes));
  return verdict.faults.map(({ text }: { text: string }) => text);
}
