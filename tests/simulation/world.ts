import { createHash } from "node:crypto";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import { clock, playRuntime } from "../../src/runtime/current.ts";
import { MemoryFiles } from "./memory_files.ts";
import { StubEncoder } from "../support/stub_encoder.ts";
import { decodersAtOnce } from "./played_decoders.ts";
import { PlayedLocks } from "./played_locks.ts";
import { PlayedNetwork } from "./played_net.ts";
import { SeededDice } from "./seeded_dice.ts";
import { VirtualClock } from "./virtual_clock.ts";
import { type AnswerFacts, CLIENT_AGES, type PullEnd, WorldClient } from "./world_client.ts";
import { NARS, STORAGE, TEMP, WorldMember } from "./world_member.ts";
import { WorldOperator } from "./world_operator.ts";
import { WorldPusher } from "./world_pusher.ts";
import { drawObjects, PLAYED_COMPRESSIONS, type WorldObject } from "./world_objects.ts";
import { UPSTREAM_FAULTS, type UpstreamFault, WorldUpstream } from "./world_upstream.ts";

/** What a world is made of. Each world of a search draws its own (swarm testing). */
export interface WorldOptions {
  readonly seed: number;
  readonly members: number;
  readonly upstreams: number;
  readonly clients: number;
  /** Clients that upload store objects of their own. */
  readonly pushers: number;
  readonly objects: number;
  readonly objectBytesMax: number;
  /** In bytes; `Infinity` for none. */
  readonly limitBytes: number;
  readonly diskBytes: number;
  readonly prefetches: boolean;
  /** Its members keep NAR files in zstd. */
  readonly recompresses: boolean;
  /** An operator removes entries, runs gc, and restarts larder with another limit. */
  readonly operates: boolean;
  /** All clients want the same path at the same moments. Default: each as it likes. */
  readonly inCrowds?: boolean;
  /** How long faults and clients go on, in virtual milliseconds. */
  readonly busyMs: number;
  /** The mean time between two faults; `Infinity`: none. */
  readonly faultEveryMs: number;
  readonly upstreamFaults: readonly UpstreamFault[];
  readonly memberFaults: readonly MemberFault[];
}

export const MEMBER_FAULTS = [
  "kill",
  "restart",
  "pause",
  "disk full",
  "damaged file",
  "cut off",
  "locks away",
] as const;

export type MemberFault = typeof MEMBER_FAULTS[number];

/** A promise that a world broke. */
export interface Violation {
  readonly atMs: number;
  readonly clause: string;
  readonly what: string;
}

export interface WorldResult {
  readonly violations: readonly Violation[];
  /** A hash of all events: the same seed gives the same one. */
  readonly digest: string;
  readonly log: readonly string[];
  readonly virtualMs: number;
  readonly pulls: Readonly<Record<PullEnd, number>>;
  /** URLs that an upstream got more than one request for. */
  readonly repeated: readonly string[];
}

/** Behind the end of a fault, its upstream counts as able to send. Health and 404s are as old. */
const SETTLED_MS = 180_000;

/** No response may take longer to its head. */
const FIRST_BYTE_MAX_MS = 60_000;

/** Everything must be served so long after the last fault. */
const MENDED_WITHIN_MS = 60_000;

/** A crowd comes so often. */
const CROWD_EVERY_MS = 10_000;

/** A world's end: nothing of its work may remain. */
const QUIET_MS = 3_600_000;

/** Runs one world from its seed to its end. */
export async function runWorld(options: WorldOptions): Promise<WorldResult> {
  const played = new VirtualClock();
  const dice = new SeededDice(options.seed);
  const files = new MemoryFiles({ capacityBytes: options.diskBytes });
  using _decoders = await decodersAtOnce();
  using _runtime = playRuntime({
    clock: played,
    dice: new SeededDice(options.seed ^ 0x5bd1),
    files,
  });
  const pushed = await drawPushed(options);
  for (const folder of [STORAGE, NARS, TEMP]) files.mkdirSync(folder, { recursive: true });
  const objects = await drawObjects(dice, options.objects, options.objectBytesMax);
  const world = new World(options, { dice, files, objects, pushed, clock: played });
  await world.open();
  try {
    await played.play(world.run());
  } finally {
    world.close();
  }
  return world.result();
}

interface WorldParts {
  readonly dice: SeededDice;
  readonly files: MemoryFiles;
  readonly objects: readonly WorldObject[];
  /** Objects that no upstream has. */
  readonly pushed: readonly WorldObject[];
  readonly clock: VirtualClock;
}

class World {
  readonly #options: WorldOptions;
  readonly #parts: WorldParts;
  readonly #network: PlayedNetwork;
  readonly #locks: PlayedLocks | undefined;
  readonly #upstreams: readonly WorldUpstream[];
  readonly #members = new Map<string, WorldMember>();
  readonly #clients: readonly WorldClient[];
  readonly #log: string[] = [];
  readonly #encoder = new StubEncoder();
  readonly #hash = createHash("sha256");
  readonly #violations: Violation[] = [];
  readonly #pulls: Record<PullEnd, number> = { whole: 0, absent: 0, broken: 0, left: 0 };
  /** When something last went wrong, or was mended, on the side of the members. */
  #disturbedAtMs = 0;
  #hasKilled = false;
  /** Members with a fault: one at a time. */
  readonly #harmed = new Set<string>();
  #isOver = false;
  #database: SqliteMetadataStore | undefined;
  /** Names of the members of this world. A killed one starts again under its name. */
  readonly #names: readonly string[];
  /** Root hashes that an operator pinned. */
  readonly #pinned = new Set<string>();
  #operator: WorldOperator | undefined;
  #limitBytes: number;
  /** The limit, or what is stored while that is more. */
  #allowedBytes: number;
  /** All members stop, and start with another limit. */
  #isRestarting = false;

  constructor(options: WorldOptions, parts: WorldParts) {
    const { dice, objects } = parts;
    this.#options = options;
    this.#limitBytes = this.#allowedBytes = options.limitBytes;
    this.#parts = parts;
    this.#network = new PlayedNetwork(() => dice.between(0.2, 20));
    this.#locks = options.members > 1 ? new PlayedLocks() : undefined;
    this.#names = Array.from({ length: options.members }, (_, at) => `m${at}`);
    this.#upstreams = Array.from({ length: options.upstreams }, (_, at) => {
      const own = objects.filter(() => at === 0 || dice.happens(0.6));
      const compression = dice.pick(PLAYED_COMPRESSIONS);
      return new WorldUpstream(`u${at}`, own, { compression, dice });
    });
    for (const upstream of this.#upstreams) this.#network.hosts.set(upstream.name, upstream);
    this.#clients = Array.from({ length: options.clients }, (_, at) =>
      new WorldClient({
        name: `c${at}`,
        age: dice.pick(CLIENT_AGES),
        ...{ network: this.#network, dice },
        events: {
          answered: (facts) => this.#answered(`c${at}`, facts),
          wrong: (what) => this.#violated("bytes and statuses", what),
        },
      }));
  }

  async open(): Promise<void> {
    const database = await openDatabase(":memory:");
    this.#database = new SqliteMetadataStore(database, () => clock.wallMs());
  }

  close(): void {
    this.#isOver = true;
  }

  result(): WorldResult {
    return {
      violations: this.#violations,
      digest: this.#hash.digest("hex"),
      log: this.#log,
      virtualMs: clock.nowMs(),
      pulls: this.#pulls,
      repeated: this.#upstreams.flatMap(({ repeated }) => repeated),
    };
  }

  async run(): Promise<void> {
    const { busyMs } = this.#options;
    for (const name of this.#names) await this.#startMember(name);
    const watch = clock.every(1_000, () => this.#checkSpace());
    const clients = this.#clients.map((client, at) => this.#live(client, `c${at}`, busyMs));
    const faults = this.#harm(busyMs);
    const operator = this.#operate(busyMs);
    const administrator = this.#administer(busyMs);
    const pushers = Array.from({ length: this.#options.pushers }, (_, at) => (
      this.#push(`p${at}`, busyMs)
    ));
    await Promise.all([...clients, faults, operator, administrator, ...pushers]);
    await this.#mend();
    await clock.pause(MENDED_WITHIN_MS);
    await this.#checkServed();
    await clock.pause(QUIET_MS);
    this.#checkRemains();
    watch.cancel();
    this.#isOver = true;
    for (const member of this.#members.values()) await member.stop();
    this.note("world", "over");
  }

  note(who: string, what: string): void {
    const line = `${clock.nowMs().toFixed(3)} ${who} ${what}`;
    this.#log.push(line);
    this.#hash.update(`${line}\n`);
  }

  changed(by: WorldMember): void {
    if (this.#names.length === 1) return;
    for (const member of this.#members.values()) {
      if (member !== by) clock.after(50, () => member.rowsChanged());
    }
  }

  async #startMember(name: string): Promise<void> {
    const database = this.#database;
    if (database === undefined) throw new Error("The world is not open");
    const { prefetches } = this.#options;
    const limitBytes = this.#limitBytes;
    const member = new WorldMember(name, {
      network: this.#network,
      files: this.#parts.files,
      database,
      locks: this.#locks,
      ...{ limitBytes, prefetches },
      encoder: this.#options.recompresses ? this.#encoder : undefined,
      upstreams: this.#upstreams,
      takesUploads: this.#options.pushers > 0,
      trustedKeys: this.#upstreams.map(({ publicKey }) => publicKey),
      changed: (by) => this.changed(by),
      note: (who, what) => this.note(who, what),
    });
    this.#members.set(name, member);
    this.#disturbed();
    try {
      await member.start();
      this.note(name, "started");
    } catch (error) {
      if (!member.died.aborted) throw error;
    }
  }

  /** A client that pulls closures until the end of the busy time. */
  async #live(client: WorldClient, name: string, untilMs: number): Promise<void> {
    const { dice, objects } = this.#parts;
    for (let round = 0; clock.nowMs() < untilMs; round++) {
      const { inCrowds = false } = this.#options;
      await clock.pause(inCrowds ? CROWD_EVERY_MS : dice.between(0, 60_000));
      const root = inCrowds ? objects[round % objects.length] : dice.pick(objects);
      if (root === undefined) throw new Error("Cannot pull one of no objects");
      const member = dice.pick(this.#names);
      const leaves = new AbortController();
      const leaving = dice.happens(0.1)
        ? clock.after(dice.between(0, 5_000), () => leaves.abort(new TypeError("left")))
        : undefined;
      const closure = this.#closureOf(root);
      await Promise.all(closure.map(async (one) => {
        const end = await client.pull(member, one, leaves.signal);
        this.#pulls[end]++;
        this.note(name, `${one.object.baseName} from ${member}: ${end}`);
      }));
      leaving?.cancel();
    }
  }

  /** A pusher that uploads its objects, and pulls them again. */
  async #push(name: string, untilMs: number): Promise<void> {
    const { pushed } = this.#parts;
    const { limitBytes, memberFaults, seed } = this.#options;
    const dice = new SeededDice(pushSeed(seed) ^ Number(name.slice(1)));
    const network = this.#network;
    const wrong = (what: string) => this.#violated("uploads", what);
    const note = (what: string) => this.note(name, what);
    const events = { wrong, answered: (facts: AnswerFacts) => this.#answered(name, facts) };
    const client = new WorldClient({ name, age: "old", network, dice, events });
    const own = pushed.filter((_, at) => at % this.#options.pushers === Number(name.slice(1)));
    // Nothing else takes an object away.
    const isSure = limitBytes === Infinity && memberFaults.length === 0;
    const parts = { name, key: PUSH_KEY, network, dice, mayLose: !isSure };
    const pusher = new WorldPusher({ ...parts, wrong, note });
    while (clock.nowMs() < untilMs) {
      await clock.pause(dice.between(0, 120_000));
      const one = dice.pick(own);
      const end = await pusher.push(dice.pick(this.#names), one);
      if (end !== "stored") continue;
      await clock.pause(dice.between(1_000, 60_000));
      const pulled = await client.pull(dice.pick(this.#names), one, new AbortController().signal);
      this.note(name, `${one.object.baseName}: ${pulled}`);
      if (isSure && pulled !== "whole") wrong(`${one.object.baseName} was uploaded: ${pulled}`);
    }
  }

  #closureOf(root: WorldObject): readonly WorldObject[] {
    const { objects } = this.#parts;
    const found = new Set([root]);
    for (const one of found) {
      for (const reference of one.object.references) {
        const next = objects.find(({ object }) => object.baseName === reference);
        if (next !== undefined) found.add(next);
      }
    }
    return [...found];
  }

  /** Faults at random, each for a while. */
  async #harm(untilMs: number): Promise<void> {
    const { faultEveryMs, upstreamFaults, memberFaults } = this.#options;
    if (faultEveryMs === Infinity) return;
    const { dice } = this.#parts;
    const running: Promise<void>[] = [];
    while (clock.nowMs() < untilMs) {
      await clock.pause(-Math.log(1 - dice.fraction()) * faultEveryMs);
      const ofMember = memberFaults.length > 0 &&
        (upstreamFaults.length === 0 || dice.happens(0.4));
      if (ofMember) running.push(this.#harmMember(dice.pick(memberFaults)));
      else if (upstreamFaults.length > 0) {
        running.push(this.#harmUpstream(dice.pick(upstreamFaults)));
      }
    }
    await Promise.all(running);
  }

  async #harmUpstream(fault: UpstreamFault): Promise<void> {
    const { dice } = this.#parts;
    const upstream = dice.pick(this.#upstreams);
    if (upstream.fault !== undefined) return;
    upstream.fault = fault;
    this.note(upstream.name, `begins: ${fault}`);
    await clock.pause(dice.between(100, 120_000));
    upstream.fault = undefined;
    this.note(upstream.name, `ends: ${fault}`);
  }

  async #harmMember(fault: MemberFault): Promise<void> {
    const { dice } = this.#parts;
    const name = dice.pick(this.#names);
    const member = this.#members.get(name);
    if (member === undefined || !member.isUp || this.#harmed.has(name)) return;
    this.#harmed.add(name);
    this.note(name, `begins: ${fault}`);
    this.#disturbed();
    try {
      await this.#harmOne(member, fault);
    } finally {
      this.#harmed.delete(name);
      this.#disturbed();
      this.note(name, `ends: ${fault}`);
    }
  }

  async #harmOne(member: WorldMember, fault: MemberFault): Promise<void> {
    const { dice, files } = this.#parts;
    const { name } = member;
    const lastsMs = dice.between(100, 90_000);
    if (fault === "kill") {
      this.#hasKilled = true;
      member.kill();
      await clock.pause(lastsMs);
      await this.#startMember(name);
    } else if (fault === "restart") {
      await member.stop();
      await clock.pause(lastsMs / 10);
      await this.#startMember(name);
    } else if (fault === "pause") {
      member.owner.pauseUntil(clock.nowMs() + lastsMs);
      await clock.pause(lastsMs);
    } else if (fault === "disk full") {
      const { diskBytes } = this.#options;
      files.capacityBytes = Math.min(diskBytes, files.bytesBelow(STORAGE) + dice.below(50_000));
      await clock.pause(lastsMs);
      files.capacityBytes = diskBytes;
    } else if (fault === "damaged file") {
      const stored = files.paths(NARS).filter((path) => path.includes(".nar"));
      if (stored.length > 0) files.damage(dice.pick(stored));
    } else if (fault === "cut off") {
      const other = dice.pick([...this.#upstreams.map((one) => one.name), ...this.#names]);
      if (other === name) return;
      this.#network.separate(name, other, true);
      await clock.pause(lastsMs);
      this.#network.separate(name, other, false);
    } else if (this.#locks !== undefined) {
      this.#locks.isAway = true;
      await clock.pause(lastsMs);
      this.#locks.isAway = false;
    }
  }

  /** An operator who pins and unpins closures. */
  async #operate(untilMs: number): Promise<void> {
    const { dice, objects } = this.#parts;
    while (clock.nowMs() < untilMs) {
      await clock.pause(dice.between(60_000, 600_000));
      const hash = dice.pick(objects).object.storePathHash;
      const isPinned = this.#pinned.has(hash);
      const url = new URL(`http://${dice.pick(this.#names)}/pin/${hash}.narinfo`);
      const method = isPinned ? "DELETE" : "POST";
      if (isPinned) this.#operator?.unpins(hash);
      using limit = clock.deadline(60_000);
      const response = await this.#network
        .send("operator", { method, url, headers: new Headers(), signal: limit.signal })
        .catch(() => undefined);
      await response?.body?.cancel();
      this.note("operator", `${method} ${hash}: ${response?.status ?? "broken"}`);
      if (method === "POST" && response?.status === 200) {
        this.#pinned.add(hash);
        const closure = objects.filter(({ object }) => object.storePathHash === hash)
          .flatMap((root) => this.#closureOf(root));
        this.#operator?.pinned(hash, closure);
      }
      if (method === "DELETE" && response?.status === 200) this.#pinned.delete(hash);
    }
  }

  /** An operator whose dice are its own: a world without one stays the same world. */
  async #administer(untilMs: number): Promise<void> {
    const { operates, objectBytesMax, memberFaults, seed } = this.#options;
    const metadata = this.#database;
    if (!operates || metadata === undefined) return;
    const dice = new SeededDice(seed ^ 0x6f_70_65);
    this.#operator = new WorldOperator({
      ...{ dice, objectBytesMax, metadata, objects: this.#parts.objects },
      member: () => [...this.#members.values()].find(({ isUp }) => isUp),
      restartAll: (limitBytes) => this.#restartAll(limitBytes),
      note: (what) => this.note("operator", what),
      wrong: (what) => {
        if (!memberFaults.includes("damaged file")) this.#violated("pins", what);
      },
    });
    await this.#operator.run(untilMs);
  }

  async #restartAll(limitBytes: number): Promise<boolean> {
    // A member with a fault of its own is started by that one.
    const names = this.#names.filter((name) => !this.#harmed.has(name));
    if (names.length < this.#names.length) return false;
    for (const name of names) this.#harmed.add(name);
    this.#isRestarting = true;
    try {
      for (const name of names) await this.#members.get(name)?.stop();
      this.#limitBytes = limitBytes;
      this.#allowedBytes = Infinity;
      for (const name of names) await this.#startMember(name);
      return true;
    } finally {
      this.#isRestarting = false;
      for (const name of names) this.#harmed.delete(name);
      this.#disturbed();
    }
  }

  /** Everything works from now on. */
  async #mend(): Promise<void> {
    for (const upstream of this.#upstreams) upstream.fault = undefined;
    this.#network.joinAll();
    this.#parts.files.capacityBytes = this.#options.diskBytes;
    if (this.#locks !== undefined) this.#locks.isAway = false;
    for (const name of this.#names) {
      if (!this.#members.get(name)?.isUp) await this.#startMember(name);
    }
    this.note("world", "mended");
  }

  #disturbed(): void {
    this.#disturbedAtMs = clock.nowMs();
  }

  /** Clauses 3 and 6: statuses, and the time until they came. */
  #answered(client: string, facts: AnswerFacts): void {
    const { kind, one, status, startedAtMs, member, method, path } = facts;
    const tookMs = clock.nowMs() - startedAtMs;
    const what = `${method} ${kind} ${one.object.baseName} from ${member} for ${client}`;
    this.note(client, `${what}: ${status ?? "broken"} after ${tookMs.toFixed(0)} ms`);
    const isPaused = (this.#members.get(member)?.owner.pausedUntilMs ?? 0) > startedAtMs;
    if (status !== undefined && tookMs > FIRST_BYTE_MAX_MS && !isPaused) {
      this.#violated("bounded waits", `${what}: first byte after ${tookMs.toFixed(0)} ms`);
    }
    if (status !== 404) return;
    const able = this.#upstreams.find((upstream) =>
      upstream.objects.has(one) && upstream.fault === undefined &&
      (kind === "narinfo" || path.includes(upstream.fileOf(one).fileHash)) &&
      upstream.changedAtMs < startedAtMs - SETTLED_MS
    );
    const startedMs = this.#members.get(member)?.startedAtMs ?? Infinity;
    const isCalm = Math.max(this.#disturbedAtMs, startedMs) < startedAtMs - SETTLED_MS;
    if (able !== undefined && isCalm) {
      this.#violated("no wrong 404", `${what}: 404, and ${able.name} has it`);
    }
  }

  /**
   * Clause 2: the limit. Behind a lower one some of what is stored may have to stay, since it is
   * pinned or staged: nothing more comes until the limit holds.
   */
  #checkSpace(): void {
    const storedBytes = this.#parts.files.bytesBelow(STORAGE);
    const allowedBytes = this.#allowedBytes;
    if (storedBytes > allowedBytes) {
      this.#violated("the limit", `${storedBytes} bytes are stored, of at most ${allowedBytes}`);
    }
    if (!this.#isRestarting) {
      this.#allowedBytes = Math.max(this.#limitBytes, Math.min(allowedBytes, storedBytes));
    }
  }

  /** Clause 7: after the faults everything is served. */
  async #checkServed(): Promise<void> {
    const { objects } = this.#parts;
    const [client] = this.#clients;
    if (client === undefined) return;
    for (const name of this.#names) {
      for (const one of objects) {
        const has = this.#upstreams.some((upstream) => upstream.objects.has(one));
        const end = await client.pull(name, one, new AbortController().signal);
        if (has && end !== "whole") {
          this.#violated("everything is served", `${one.object.baseName} from ${name}: ${end}`);
        }
      }
    }
  }

  /** Clause 5: after a quiet hour nothing is left of the work. */
  #checkRemains(): void {
    if (this.#hasKilled) return;
    const { files } = this.#parts;
    const open = files.openPaths();
    if (open.length > 0) this.#violated("no leaks", `open files: ${open.slice(0, 3).join()}`);
    const partial = files.paths(TEMP);
    if (partial.length > 0) this.#violated("no leaks", `partial files: ${partial.join()}`);
    const { open: exchanges } = this.#network;
    if (exchanges.length > 0) this.#violated("no leaks", `exchanges: ${exchanges.join("; ")}`);
    if ((this.#locks?.count ?? 0) > 0) this.#violated("no leaks", "locks are held");
  }

  #violated(clause: string, what: string): void {
    if (this.#isOver) return;
    this.note("VIOLATION", `${clause}: ${what}`);
    this.#violations.push({ atMs: clock.nowMs(), clause, what });
  }
}

const PUSH_KEY = generateSecretKey("pusher-1");

/** Dice of their own: a world without pushers stays the same world. */
function pushSeed(seed: number): number {
  return seed ^ 0x70_75_73;
}

async function drawPushed(options: WorldOptions): Promise<readonly WorldObject[]> {
  if (options.pushers === 0) return [];
  const dice = new SeededDice(pushSeed(options.seed));
  return await drawObjects(dice, 6, options.objectBytesMax, "pushed");
}

/** Worlds of lower seeds have no pushers: some are kept because they broke a promise once. */
const FIRST_SEED_WITH_PUSHERS = 2_000;

/** Worlds of lower seeds have no operator who deletes and restarts. */
const FIRST_SEED_WITH_OPERATOR = 600_000;

/** Worlds of lower seeds keep their files as they came. */
const FIRST_SEED_WITH_RECOMPRESSION = 8_000_000;

/** The options of a world, drawn from its seed. */
export function drawOptions(seed: number): WorldOptions {
  const dice = new SeededDice(seed ^ 0x2c1b3c6d);
  const some = <Item>(all: readonly Item[]) => all.filter(() => dice.happens(0.5));
  const members = dice.pick([1, 1, 2, 3]);
  const objects = 5 + dice.below(30);
  const objectBytesMax = dice.pick([2_000, 50_000, 300_000]);
  return {
    ...{ seed, members, objects, objectBytesMax },
    upstreams: 1 + dice.below(4),
    clients: 1 + dice.below(6),
    limitBytes: dice.pick([Infinity, 2, 5]) * objectBytesMax,
    diskBytes: 1e9,
    prefetches: dice.happens(0.7),
    busyMs: dice.pick([10, 30, 120]) * 60_000,
    faultEveryMs: dice.pick([Infinity, 10_000, 60_000, 300_000]),
    upstreamFaults: some(UPSTREAM_FAULTS),
    memberFaults: some(MEMBER_FAULTS),
    pushers: seed < FIRST_SEED_WITH_PUSHERS ? 0 : dice.pick([0, 1, 2]),
    operates: seed >= FIRST_SEED_WITH_OPERATOR && dice.happens(0.7),
    recompresses: seed >= FIRST_SEED_WITH_RECOMPRESSION && dice.happens(0.5),
  };
}
