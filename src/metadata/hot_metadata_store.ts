import { LRUCache } from "lru-cache";
import { Failure, messageOf } from "../base/failure.ts";
import { lruOf } from "../base/lru.ts";
import { Notifier } from "../base/notifier.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { narNameOf } from "../nix/stored_name.ts";
import { clock } from "../runtime/current.ts";
import { DATABASE } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { arrivalsOf, type Changed } from "./change_feed.ts";
import {
  type Change,
  type ChangeOf,
  type ChangeWriter,
  type FindOptions,
  isSameClaim,
  type MetadataStore,
  type NarFinder,
  type NarinfoRow,
  NarNameTaken,
  type NarRecord,
  type NarRow,
  type NarSource,
  NEVER_USED_AT_MS,
  Outdated,
  type PinNote,
  type RowSweepOrder,
  type SweptRows,
  type WriteOptions,
} from "./metadata_store.ts";
import type { Evicted, EvictionOrder, ExpiryOrder, PendingFile } from "./space_keeper.ts";
import type { StoredPaths } from "./stored_paths.ts";

/** Characters of narinfos held in memory: some ten thousand of them. */
const NARINFO_CHARS_MAX = 8 << 20;

const NARS_MAX = 10_000;

/** The methods that read and change nothing in memory. */
const FORWARDED = [
  ...["keptNars", "usedNars", "pathTimes", "graphRows", "narinfoBodies", "findNamed"],
  ...["findSigned", "signedCounts", "findPin", "pins", "namedPins", "databaseSize", "stock"],
  ...["reserve", "beat", "members", "leave", "coldest", "protect", "areSumsRight", "recount"],
  ...["pendingFiles", "findDocument", "documentPiece", "documentBytes", "debuginfoSourcesOf"],
  ...["narOfFormerName", "formerNamesOf", "putFormerNames"],
  ...["recordHistory", "history", "recordPulls", "pulls", "findPull"],
] as const satisfies readonly (keyof MetadataStore)[];

/** Has these methods, as calls of those of the inner store. */
const ForwardingStore = class {
  constructor(inner: MetadataStore) {
    for (const name of FORWARDED) {
      const call = (...values: unknown[]) => (inner[name] as CallableFunction)(...values);
      Object.assign(this, { [name]: call });
    }
  }
} as new (inner: MetadataStore) => Pick<MetadataStore, (typeof FORWARDED)[number]>;

type HotRow = NarinfoRow | NarRecord;

/**
 * Keeps frequent rows in memory: a point read costs as much as the rest of an answer. So are rows
 * from a write for a client: they are served when the database goes away. Upstreams'
 * narinfos stay there until a locked database takes them. Changes of this process go through here;
 * call `forgetChanged` for those of other processes.
 */
export class HotMetadataStore extends ForwardingStore implements MetadataStore {
  readonly #inner: MetadataStore;
  readonly #narinfos = new LRUCache<StorePathHash, NarinfoRow>({
    maxSize: NARINFO_CHARS_MAX,
    sizeCalculation: (row) => row.body.length + 1,
  });
  readonly #nars = lruOf<NarName, NarRecord>({ countMax: NARS_MAX });
  /** Counts the changes: a row that was read before a change is not kept after it. */
  #epoch = 0;
  /** The rows that are being written, by key. A further change of the key takes it out. */
  readonly #writing = new Map<StorePathHash | NarName, HotRow>();
  readonly #late: LateWrites;
  readonly #stored: Pick<StoredPaths, "add" | "learn"> | undefined;
  #arrived: (arrived: Changed) => void = () => undefined;

  /** `stored`: learns of each narinfo that anybody writes. */
  constructor(inner: MetadataStore, log: Logger, stored?: Pick<StoredPaths, "add" | "learn">) {
    super(inner);
    this.#inner = inner;
    this.#stored = stored;
    const landed = (changes: readonly Change[]) => {
      this.#forget(changes);
      this.#arrived(arrivalsOf(changes));
    };
    this.#late = new LateWrites({ inner, landed, log });
  }

  /** Calls `on` after each write of narinfos or kept NARs, by whichever process. */
  whenArrived(on: (arrived: Changed) => void): void {
    this.#arrived = on;
  }

  /** Another number after each change of narinfos, NARs and pins that this process knows of. */
  get generation(): number {
    return this.#epoch;
  }

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    const hot = this.#narinfos.get(storePathHash);
    if (hot !== undefined) return hot;
    const late = this.#late.narinfo(storePathHash);
    if (late !== undefined) return late;
    const epoch = this.#epoch;
    const row = await this.#inner.findNarinfo(storePathHash);
    if (epoch !== this.#epoch) {
      // Written during the read: a second request to the upstreams would be for nothing.
      return this.#narinfos.get(storePathHash) ?? this.#late.narinfo(storePathHash) ?? row;
    }
    if (row !== undefined) this.#narinfos.set(storePathHash, row);
    return row;
  }

  narinfoLanded(storePathHash: StorePathHash, limitMs: number): Promise<void> | undefined {
    return this.#late.landed(storePathHash, limitMs);
  }

  async findNar(
    narName: NarName,
    { fresh = false }: FindOptions = {},
  ): Promise<NarRecord | undefined> {
    const hot = fresh ? undefined : this.#nars.get(narName);
    if (hot !== undefined) return hot;
    const epoch = this.#epoch;
    const late = this.#late.nar(narName);
    const record = await orElse(late, this.#inner.findNar(narName));
    if (epoch !== this.#epoch) {
      // Kept during the read: a second download would be for nothing.
      const kept = fresh ? undefined : this.#nars.get(narName);
      return kept ?? record ?? this.#late.nar(narName) ?? late;
    }
    if (record !== undefined && record !== late) this.#nars.set(narName, record);
    return record ?? late;
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    const late = this.#late.sourcesOf(narName);
    const stored = this.#inner.sourcesOf(narName);
    if (late.length === 0) return await stored;
    const all = [...await orElse([], stored), ...late];
    return [...new Map(all.map((source) => [source.upstream, source])).values()];
  }

  async narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    const late = this.#late.narinfosOf(narName);
    const stored = this.#inner.narinfosOf(narName);
    if (late.length === 0) return await stored;
    return [...new Set([...await orElse([], stored), ...late])];
  }

  async referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#late.references(storePathHash) ?? await this.#inner.referencesOf(storePathHash);
  }

  async notePin(storePathHash: StorePathHash, note: PinNote): Promise<void> {
    await this.#inner.notePin(storePathHash, note);
    this.#epoch++;
  }

  async evict(order: EvictionOrder): Promise<Evicted> {
    const evicted = await this.#inner.evict(order);
    for (const storePathHash of evicted.narinfos) this.#dropNarinfo(storePathHash);
    for (const { at } of evicted.files) this.#dropNar(narNameOf(at));
    this.#epoch++;
    return evicted;
  }

  async sweepRows(order: RowSweepOrder): Promise<SweptRows> {
    const swept = await this.#inner.sweepRows(order);
    for (const storePathHash of swept.narinfos) this.#dropNarinfo(storePathHash);
    for (const narName of swept.nars) this.#dropNar(narName);
    this.#epoch++;
    return swept;
  }

  async expireNars(order: ExpiryOrder): Promise<readonly PendingFile[]> {
    const files = await this.#inner.expireNars(order);
    for (const { at } of files) this.#dropNar(narNameOf(at));
    if (files.length > 0) this.#epoch++;
    return files;
  }

  async apply(changes: readonly Change[], options?: WriteOptions): Promise<void> {
    const row = this.#rowAfter(changes);
    this.#forget(changes);
    if (row !== undefined) this.#writing.set(keyOf(row), row);
    let isLast = false;
    try {
      if (isFromUpstreams(changes)) await this.#late.write(changes);
      else await this.#inner.apply(changes, options);
      isLast = row !== undefined && this.#writing.get(keyOf(row)) === row;
    } finally {
      // A concurrent read may have kept an old row during the write.
      this.#forget(changes);
    }
    if (row !== undefined && isLast) this.#keep(row);
    this.#arrived(arrivalsOf(changes));
  }

  /** The row that a lone change leaves; `undefined`: unknown, or no client requested it. */
  #rowAfter(changes: readonly Change[]): HotRow | undefined {
    const [change, ...more] = changes.filter(({ kind }) => kind !== "put-signed");
    if (more.length > 0) return undefined;
    if (change?.kind === "put-narinfo" && change.atMs !== NEVER_USED_AT_MS) return change.row;
    // The store adds the time of the former file to a recompressed one.
    if (change?.kind !== "nar-kept" || change.file.form !== undefined) return undefined;
    const known = this.#nars.peek(narNameOf(change.file.at));
    return known && { ...known, kept: change.file };
  }

  #keep(row: HotRow): void {
    if ("storePathHash" in row) this.#narinfos.set(row.storePathHash, row);
    else this.#nars.set(row.name, row);
  }

  #dropNarinfo(storePathHash: StorePathHash): void {
    this.#narinfos.delete(storePathHash);
    this.#writing.delete(storePathHash);
  }

  #dropNar(narName: NarName): void {
    this.#nars.delete(narName);
    this.#writing.delete(narName);
  }

  /** Drops rows that another process has changed. A change feed calls it. */
  forgetChanged(changed: Changed): void {
    this.#epoch++;
    this.#arrived(changed);
    if (changed === "all") {
      void this.#stored?.learn();
      this.#narinfos.clear();
      this.#nars.clear();
      this.#writing.clear();
      return;
    }
    for (const storePathHash of changed.storePaths) {
      this.#stored?.add(storePathHash);
      this.#dropNarinfo(storePathHash);
    }
    for (const narName of changed.nars) this.#dropNar(narName);
  }

  #forget(changes: readonly Change[]): void {
    for (const change of changes) {
      switch (change.kind) {
        case "put-narinfo":
          this.#stored?.add(change.row.storePathHash);
          this.#dropNarinfo(change.row.storePathHash);
          this.#dropNar(change.nar.name);
          break;
        case "remove-narinfo":
          this.#dropNarinfo(change.storePathHash);
          break;
        case "stage-nar":
          this.#dropNar(change.nar.name);
          break;
        case "remove-nar":
          this.#dropNar(change.narName);
          break;
        case "nar-kept":
          this.#dropNar(narNameOf(change.file.at));
          break;
        case "put-pin":
        case "remove-pin":
        case "roll-pin":
        case "unpin-name":
          break;
        case "nar-broken":
        case "nar-sealed":
        case "nar-marked":
          this.#dropNar(narNameOf(change.at));
          break;
        case "put-signed":
        case "forget-signed":
        case "put-source":
        case "nar-publishing":
        case "nar-taken":
        case "nar-stuck":
        case "nar-gone":
        case "touch-narinfo":
        case "touch-nar":
        case "put-document":
        case "check-document":
        case "touch-document":
        case "remove-document":
          continue;
      }
      this.#epoch++;
    }
  }
}

function keyOf(row: HotRow): StorePathHash | NarName {
  return "storePathHash" in row ? row.storePathHash : row.name;
}

/** `late` where the database cannot be read, because another process locks it. */
async function orElse<Value>(late: Value, stored: Promise<Value>): Promise<Value> {
  if (late === undefined) return await stored;
  return await stored.catch(() => late);
}

type PutNarinfo = ChangeOf<"put-narinfo">;

/** Changes from an upstream's answers. */
export type UpstreamChange = PutNarinfo | ChangeOf<"put-source"> | ChangeOf<"put-signed">;

/** How long a client's request waits for the database. */
const LATE_AFTER_MS = 500;

/** Lists of changes in memory: some 30 MB, and more than any closure has. */
const LATE_MAX = 10_000;

/** Characters of narinfos in memory: some are a thousand times as long as most. */
const LATE_LENGTH_MAX = 64 << 20;

interface LateWritesDeps {
  readonly inner: ChangeWriter & Pick<NarFinder, "findNar">;
  /** Called when late changes are written, or given up. */
  readonly landed: (changes: readonly UpstreamChange[]) => void;
  readonly log: Logger;
}

/** True where all changes are from upstreams' answers. */
function isFromUpstreams(changes: readonly Change[]): changes is readonly UpstreamChange[] {
  return changes.every((change) =>
    change.kind === "put-source" || change.kind === "put-narinfo" && change.onlyIf === undefined ||
    change.kind === "put-signed" && change.unlessOther !== true
  );
}

/**
 * Changes from upstreams' answers, written when the database takes them. While another process
 * locks it, no request waits: larder reads the changes from memory, and writes them later in their
 * order.
 */
export class LateWrites {
  readonly #deps: LateWritesDeps;
  readonly #lists = new Set<readonly UpstreamChange[]>();
  /** The last change of each path. */
  readonly #narinfos = new Map<StorePathHash, PutNarinfo>();
  readonly #nars = new Map<NarName, Set<UpstreamChange>>();
  readonly #outage;
  readonly #late = clock.sharedTimer(LATE_AFTER_MS);
  readonly #soon = clock.sharedTimer(0);
  readonly #removed = new Notifier();
  #length = 0;

  constructor(deps: LateWritesDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "writes-landed");
  }

  /** Resolves when the changes are written, or readable here. Throws as `apply` does. */
  async write(changes: readonly UpstreamChange[]): Promise<void> {
    const { inner } = this.#deps;
    if (this.#lists.size >= LATE_MAX || this.#length >= LATE_LENGTH_MAX) {
      const message = "Cannot keep narinfo: too many wait for the database";
      throw new Failure("unavailable", message, { part: DATABASE, waiting: this.#lists.size });
    }
    const writing = inner.apply(changes, { mustWait: true }).then(() => true as const);
    writing.catch(() => undefined);
    if (await this.#isInTime(writing)) return;
    await this.#refuseTaken(changes);
    this.#add(changes);
    writing.catch((error) => {
      // An upload came first, and stays.
      const level = error instanceof Outdated ? "debug" : "error";
      this.#deps.log.event("narinfo-not-kept", { error: messageOf(error) }, level);
    }).finally(() => this.#remove(changes));
  }

  /** The late narinfo, newer than the database's. */
  narinfo(storePathHash: StorePathHash): NarinfoRow | undefined {
    return this.#narinfos.get(storePathHash)?.row;
  }

  /** The references of a late narinfo. */
  references(storePathHash: StorePathHash): readonly StorePathHash[] | undefined {
    return this.#narinfos.get(storePathHash)?.references;
  }

  /** `undefined` where nothing of the path is late. Else resolves when it landed, or in time. */
  landed(storePathHash: StorePathHash, limitMs: number): Promise<void> | undefined {
    const change = this.#narinfos.get(storePathHash);
    if (change === undefined) return undefined;
    const untilMs = clock.nowMs() + limitMs;
    const isLate = () => this.#narinfos.get(storePathHash) === change;
    return (async () => {
      for (let leftMs = limitMs; leftMs > 0 && isLate(); leftMs = untilMs - clock.nowMs()) {
        await this.#removed.notified(leftMs);
      }
    })();
  }

  nar(narName: NarName): NarRow | undefined {
    for (const change of this.#nars.get(narName) ?? []) {
      if (change.kind === "put-narinfo") return change.nar;
    }
    return undefined;
  }

  sourcesOf(narName: NarName): readonly NarSource[] {
    return [...this.#nars.get(narName) ?? []].flatMap((change) => {
      if (change.kind === "put-narinfo") return change.sources;
      return change.kind === "put-source" ? change.source : [];
    });
  }

  narinfosOf(narName: NarName): readonly StorePathHash[] {
    return [...this.#nars.get(narName) ?? []].flatMap((change) =>
      change.kind === "put-narinfo" ? change.row.storePathHash : []
    );
  }

  /** Never waits behind lists that are late already. Throws the error of `writing`. */
  async #isInTime(writing: Promise<true>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<false>();
    using _limit = (this.#lists.size > 0 ? this.#soon : this.#late).start(() => resolve(false));
    return await Promise.race([writing, promise]);
  }

  /** A taken name must fail now: later its narinfo has been served. */
  async #refuseTaken(changes: readonly UpstreamChange[]): Promise<void> {
    for (const change of changes) {
      if (change.kind !== "put-narinfo") continue;
      const { name } = change.nar;
      // A row that cannot be read counts as absent.
      const stored = await this.#deps.inner.findNar(name).catch(() => undefined);
      for (const known of [stored, this.nar(name)]) {
        if (known !== undefined && !isSameClaim(known, change.nar)) {
          throw new NarNameTaken(name);
        }
      }
    }
  }

  #add(changes: readonly UpstreamChange[]): void {
    if (this.#lists.size === 0) {
      this.#outage.failed("writes-late");
    }
    this.#lists.add(changes);
    this.#length += lengthOf(changes);
    for (const change of changes) {
      if (change.kind === "put-narinfo") this.#narinfos.set(change.row.storePathHash, change);
      const narName = namedNar(change);
      if (narName === undefined) continue;
      const ofNar = this.#nars.get(narName) ?? new Set();
      this.#nars.set(narName, ofNar.add(change));
    }
  }

  #remove(changes: readonly UpstreamChange[]): void {
    if (this.#lists.delete(changes)) this.#length -= lengthOf(changes);
    for (const change of changes) {
      const narName = namedNar(change);
      if (narName === undefined) continue;
      const ofNar = this.#nars.get(narName);
      ofNar?.delete(change);
      if (ofNar?.size === 0) this.#nars.delete(narName);
      if (change.kind !== "put-narinfo") continue;
      const { storePathHash } = change.row;
      if (this.#narinfos.get(storePathHash) === change) this.#narinfos.delete(storePathHash);
    }
    this.#deps.landed(changes);
    this.#removed.notify();
    if (this.#lists.size === 0) this.#outage.worked();
  }
}

function lengthOf(changes: readonly UpstreamChange[]): number {
  return changes.reduce(
    (sum, change) => sum + (change.kind === "put-narinfo" ? change.row.body.length : 0),
    0,
  );
}

/** `undefined` for a change of a path alone. */
function namedNar(change: UpstreamChange): NarName | undefined {
  if (change.kind === "put-signed") return undefined;
  return change.kind === "put-narinfo" ? change.nar.name : change.narName;
}
