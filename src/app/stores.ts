import { type Around, around } from "../base/around.ts";
import type { Bytes } from "../base/bytes.ts";
import { messageOf } from "../base/failure.ts";
import { isOfHost, type MemberId, newMemberId } from "../base/member_id.ts";
import { streamFrom } from "../base/stream_of.ts";
import { isPublishing } from "../cache/nar/publish_nar.ts";
import { tryStoring } from "../cache/nar/try_storing.ts";
import type { StorageClaim } from "../cache/reconcile/storage_claim.ts";
import type { ChangeFeed } from "../metadata/change_feed.ts";
import { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import {
  isRefusal,
  type KeyKeeper,
  type MetadataStore,
  type StorageIdKeeper,
} from "../metadata/metadata_store.ts";
import type { SpaceLedger } from "../metadata/space_keeper.ts";
import { StoredPaths } from "../metadata/stored_paths.ts";
import type { StoredName } from "../nix/stored_name.ts";
import { clock } from "../runtime/current.ts";
import { BEAT_EVERY_MS, recover, settlingOutage } from "../space/recover.ts";
import { HotNarStore } from "../storage/hot_nar_store.ts";
import { LocalSpool } from "../storage/local/local_spool.ts";
import type {
  ListedNar,
  NarLocator,
  NarStore,
  OpenOptions,
  StoredNar,
} from "../storage/nar_store.ts";
import { WatchedNarStore } from "../storage/watched_nar_store.ts";
import type { OperationOf } from "../telemetry/instruments/operation_labels.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Metrics, type OperationMeter, operationMeter } from "../telemetry/metrics.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { type RunBelow, type SpanStart, traced, type Tracer } from "../telemetry/tracer.ts";
import { openBackEnds, type StorePlaces } from "./back_ends/back_ends.ts";
import { hasEnded } from "./back_ends/ended_process.ts";
import type { Folders } from "./folders.ts";

/** Measured: with files of 50 KiB it doubles the answers a second, for its size in memory. */
const HOT_NARS = { fileBytesMax: 256 * 1024, totalBytesMax: 16 << 20 };

/** The open back ends, without unfinished work of dead processes. */
export interface Stores extends AsyncDisposable {
  /** Reports other processes' writes to the database. */
  readonly changes: ChangeFeed;
  /** The same, with frequent entries in memory. */
  readonly metadata: HotMetadataStore;
  /** `undefined` for a database on this machine: it goes away with larder. */
  readonly storedPaths: StoredPaths | undefined;
  readonly nars: HotNarStore;
  readonly board: MemberBoard;
  readonly ids: Pick<StorageIdKeeper, "storageId">;
  /** `undefined` where the members have one machine. */
  readonly keys: KeyKeeper | undefined;
  /** `undefined` where other programs cannot read the store. */
  readonly locator: NarLocator | undefined;
  /** How long a removed object must stay for readers that have found it. */
  readonly graceMs: number;
  /** This process among those that share the storage. */
  readonly member: MemberId;
  /** The time that the members share, in milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly spool: LocalSpool;
  /** Whether the NAR files are this database's. */
  readonly claim: Pick<StorageClaim, "confirm">;
  /** Removes the remains of members that died meanwhile, and compares the clocks. */
  settle(): Promise<void>;
  /** Finds out whether the store of NAR files answers, if it is on another machine. */
  probe(): Promise<void>;
}

/** Follows and counts the operations of back ends. */
export interface StoreWatchers {
  readonly tracer?: Tracer | undefined;
  readonly metrics?: Metrics;
}

/** Opens the back ends. Throws a Failure that names an unusable one. */
export async function openStores(
  places: StorePlaces,
  folders: Pick<Folders, "temp">,
  log: Logger,
  { tracer, metrics = new Metrics() }: StoreWatchers = {},
): Promise<Stores> {
  await using opened = new AsyncDisposableStack();
  const member = newMemberId(Deno.hostname(), Deno.pid);
  const [rows, meter] = [operationMeter(metrics, "database"), operationMeter(metrics, "storage")];
  const opening = await openBackEnds(places, log, { member, tracer, meter });
  const { metadata: unmetered, nars: narFiles, marks, ...back } = opened.use(opening);
  const database = meteredMetadata(unmetered, rows);
  const board = meteredBoard(unmetered.board, rows);
  const { claim, locator, graceMs } = back;
  const isDatabaseHere = places.database.kind === "sqlite";
  const storedPaths = isDatabaseHere ? undefined : opened.use(new StoredPaths(unmetered));
  const metadata = new HotMetadataStore(
    tracer ? tracedMetadata(database, places.database.kind, tracer) : database,
    log,
    storedPaths,
  );
  opened.use(database.subscribe((changed) => metadata.forgetChanged(changed)));
  void storedPaths?.learn();
  const isRemote = places.nars.kind !== "local";
  const metered = isRemote ? narFiles : meteredFolder(narFiles, meter);
  const traced = tracer ? tracedNars(metered, places.nars.kind, tracer) : metered;
  const sharedClock = new SharedClock({ board, nowMs: () => clock.wallMs(), log });
  await sharedClock.measure();
  // A clock that never steps back.
  const nowMs = () => clock.nowMs();
  const mark = () => marks.read();
  const watched = isRemote ? new WatchedNarStore(traced, { mark, log, nowMs }) : undefined;
  const nars = new HotNarStore(watched ?? traced, HOT_NARS);
  const spool = opened.use(new LocalSpool(folders.temp, { member, log }));
  const outage = settlingOutage(log);
  const settling = { metadata, nars, spool, member, hasEnded, isPublishing, log, outage };
  await recover(settling);
  // A member that was killed a moment ago is not dead yet, but a client may ask for its files.
  spool.share(spool.others().filter(hasEnded));
  const watch = new SharedFileWatch({
    ...{ ledger: metadata, member, hostname: Deno.hostname(), log, nowMs },
  });
  const resources = opened.move();
  return {
    ...{ changes: database, metadata, storedPaths, nars, locator, graceMs, member, spool, claim },
    ...{ board, ids: database, keys: database.keys, nowMs: sharedClock.nowMs },
    async settle() {
      await sharedClock.measure();
      await recover(settling);
      if (isDatabaseHere) await watch.warnIfShared();
    },
    probe: async () => {
      await watched?.probe(() => tryStoring({ metadata, nars, folder: spool.path }, 0));
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Below this the clocks agree: time must not jump for the delay of a query. */
const AGREES_MS = 1_000;

/** Log lines and certificates of this machine are wrong by more than people expect. */
const DIFFERS_MS = 60_000;

interface SharedClockDeps {
  readonly board: Pick<MemberBoard, "sharedNowMs">;
  /** The clock of this machine, in milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly log: Logger;
}

/**
 * The time that all members share: that of this machine, less its difference from the database's.
 * Members compare the times that others wrote: of uses, of uploads that expire, of unused rows.
 */
export class SharedClock {
  readonly #deps: SharedClockDeps;
  readonly #outage: OutageLog<"clock-agrees">;
  #clockLeadMs = 0;

  constructor(deps: SharedClockDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "clock-agrees");
  }

  /** In milliseconds since 1970. */
  readonly nowMs = (): number => this.#deps.nowMs() - this.#clockLeadMs;

  /** Measures the difference. Without an answer the last one stays. Never rejects. */
  async measure(): Promise<void> {
    const { board, nowMs, log } = this.#deps;
    try {
      const askedAtMs = nowMs();
      const sharedMs = await board.sharedNowMs();
      const answeredAtMs = nowMs();
      const toleranceMs = AGREES_MS + Math.abs(answeredAtMs - askedAtMs) / 2;
      const clockLeadMs = Math.round((askedAtMs + answeredAtMs) / 2 - sharedMs);
      if (Math.abs(clockLeadMs - this.#clockLeadMs) <= toleranceMs) return;
      this.#clockLeadMs = Math.abs(clockLeadMs) <= toleranceMs ? 0 : clockLeadMs;
      this.#notify();
    } catch (error) {
      log.debug("clocks not compared", { error: messageOf(error) });
    }
  }

  #notify(): void {
    const facts = { ahead_s: Math.round(this.#clockLeadMs / 1_000) };
    if (Math.abs(this.#clockLeadMs) <= DIFFERS_MS) this.#outage.worked(facts);
    else this.#outage.failed("clock-differs", facts);
  }
}

interface SharedFileWatchDeps {
  readonly ledger: Pick<SpaceLedger, "members">;
  /** This process, on `hostname`. */
  readonly member: MemberId;
  readonly hostname: string;
  /** Never set back. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, "event">;
}

/**
 * Warns once if a larder of another host uses this SQLite file. Containers of one machine may. Over
 * a network SQLite's locks do not hold.
 */
export class SharedFileWatch {
  readonly #deps: SharedFileWatchDeps;
  readonly #startedAtMs: number;
  #hasWarned = false;

  constructor(deps: SharedFileWatchDeps) {
    this.#deps = deps;
    this.#startedAtMs = deps.nowMs();
  }

  async warnIfShared(): Promise<void> {
    if (this.#hasWarned) return;
    const { ledger, member, hostname, nowMs, log } = this.#deps;
    const members = await ledger.members(member);
    // A heartbeat from before the start may be of one that has died. Silence is measured from this
    // member's own last heartbeat.
    const lately = nowMs() - this.#startedAtMs - BEAT_EVERY_MS;
    const other = members.find(({ id, silentMs }) => silentMs < lately && !isOfHost(hostname, id));
    if (other === undefined) return;
    this.#hasWarned = true;
    log.event("sqlite-file-shared", { member: other.id });
  }
}

type DatabaseOperation = OperationOf<"database">;

/** What a method is in SQL's terms. */
type TracedQuery = "SELECT" | "UPDATE" | "BATCH";

/**
 * The methods that ask the database: how they count, and for those that have spans, what they are
 * in SQL's terms. No table if there are several. `narinfoLanded` waits for a write that counts
 * already.
 */
const DATABASE_OPERATIONS = {
  findNarinfo: ["read", "SELECT", "narinfo"],
  findNar: ["read", "SELECT", "nar"],
  sourcesOf: ["read", "SELECT", "nar_source"],
  narinfosOf: ["read", "SELECT", "narinfo"],
  narOfFormerName: ["read", "SELECT", "former_name"],
  formerNamesOf: ["read", "SELECT", "former_name"],
  keptNars: ["read"],
  usedNars: ["read"],
  referencesOf: ["read", "SELECT", "reference"],
  pathTimes: ["read"],
  graphRows: ["read", "SELECT", "reference"],
  narinfoBodies: ["read", "SELECT", "narinfo"],
  findNamed: ["read", "SELECT", "narinfo"],
  findSigned: ["read", "SELECT", "signed_path"],
  signedCounts: ["read", "SELECT", "signed_path"],
  findPin: ["read", "SELECT", "pin_root"],
  pins: ["read", "SELECT", "pin_root"],
  namedPins: ["read", "SELECT", "pin_name"],
  findDocument: ["read", "SELECT", "document"],
  documentPiece: ["read", "SELECT", "document_piece"],
  documentBytes: ["read", "SELECT", "document_stock"],
  debuginfoSourcesOf: ["read", "SELECT", "document"],
  history: ["read", "SELECT", "history"],
  pulls: ["read", "SELECT", "pull"],
  findPull: ["read", "SELECT", "pull"],
  databaseSize: ["read"],
  stock: ["read", "SELECT", "stock"],
  members: ["read"],
  coldest: ["read", "SELECT", "narinfo_use"],
  areSumsRight: ["read"],
  pendingFiles: ["read"],
  storageId: ["read"],
  apply: ["write", "BATCH"],
  reserve: ["write", "BATCH", "member"],
  beat: ["write"],
  leave: ["write"],
  evict: ["write", "BATCH"],
  sweepRows: ["write", "BATCH"],
  protect: ["write", "BATCH", "protected_path"],
  recount: ["write"],
  expireNars: ["write", "BATCH", "loose_nar"],
  recordHistory: ["write", "BATCH", "history"],
  recordPulls: ["write", "BATCH", "pull"],
  notePin: ["write", "UPDATE", "pin_root"],
  putFormerNames: ["write", "BATCH", "former_name"],
} as const satisfies Readonly<
  Record<
    Exclude<keyof MetadataStore, "narinfoLanded"> | keyof Pick<StorageIdKeeper, "storageId">,
    readonly [DatabaseOperation, TracedQuery?, string?]
  >
>;

const BOARD_OPERATIONS = {
  report: ["write"],
  withdraw: ["write"],
  sharedNowMs: ["read"],
} as const satisfies Readonly<Record<keyof MemberBoard, readonly [DatabaseOperation]>>;

/** A store that counts and times its queries. Belongs below the memory cache. */
export function meteredMetadata<Store extends MetadataStore & Pick<StorageIdKeeper, "storageId">>(
  inner: Store,
  meter: OperationMeter<DatabaseOperation>,
): Store {
  return around<Store>(inner, aroundEach(DATABASE_OPERATIONS, meter));
}

/** The same for the reports of the members. */
export function meteredBoard(
  inner: MemberBoard,
  meter: OperationMeter<DatabaseOperation>,
): MemberBoard {
  return around(inner, aroundEach(BOARD_OPERATIONS, meter));
}

/** The same for a folder of NAR files. The client of S3 counts its requests itself. */
export function meteredFolder(
  inner: NarStore,
  meter: OperationMeter<OperationOf<"storage">>,
): NarStore {
  return {
    open: (at, options) => meter.run("open", () => inner.open(at, options), options),
    put: (at, path) => meter.run("write", () => inner.put(at, path)),
    remove: (at) => meter.run("remove", () => inner.remove(at)),
    async *list(prefix, options): AsyncIterable<ListedNar> {
      const files = inner.list(prefix, options)[Symbol.asyncIterator]();
      try {
        // Up to the first file: the rest takes as long as its reader does.
        const first = await meter.run("list", () => files.next());
        if (first.done) return;
        yield first.value;
        yield* { [Symbol.asyncIterator]: () => files };
      } finally {
        await files.return?.();
      }
    },
  };
}

function aroundEach(
  operations: Readonly<Record<string, readonly [DatabaseOperation, ...unknown[]]>>,
  meter: OperationMeter<DatabaseOperation>,
) {
  const wraps = Object.entries(operations).map(([method, [operation]]) => {
    const metered: Around = (call, args) =>
      meter.run(operation, call, { signal: args.find(isSignal), isAnswer: isRefusal });
    return [method, metered];
  });
  return Object.fromEntries(wraps);
}

function isSignal(given: unknown): given is AbortSignal {
  return given instanceof AbortSignal;
}

/** Databases by their names in OpenTelemetry's conventions. */
const SYSTEMS = { sqlite: "sqlite", postgres: "postgresql" } as const;

/**
 * A store with a span for each query. Belongs below the memory cache, whose answers are no queries.
 */
export function tracedMetadata<Store extends MetadataStore>(
  inner: Store,
  kind: keyof typeof SYSTEMS,
  tracer: Tracer,
): Store {
  const operations: readonly (readonly [string, readonly [unknown, TracedQuery?, string?]])[] =
    Object.entries(DATABASE_OPERATIONS);
  const starts = operations.flatMap(([method, [_, query, table]]) =>
    query === undefined ? [] : [[method, spanOf(method, query, table, SYSTEMS[kind])]]
  );
  return traced<Store>(inner, tracer, Object.fromEntries(starts));
}

/** A span with the attributes of OpenTelemetry's conventions for databases. */
function spanOf(
  method: string,
  operation: TracedQuery,
  table: string | undefined,
  system: string,
): SpanStart {
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    kind: "client",
    facts: {
      "db.system.name": system,
      "db.operation.name": operation,
      ...(table === undefined ? {} : { "db.collection.name": table }),
      "code.function.name": method,
    },
  };
}

/** A store with a span for each file operation. Requests to S3 are spans below it. */
export function tracedNars(inner: NarStore, kind: "local" | "s3", tracer: Tracer): NarStore {
  const store = traced(inner, tracer, {
    open: { name: "open nar file" },
    put: { name: "publish nar file" },
    remove: { name: "remove nar file" },
  });
  return kind === "s3" ? readsTraced(store, tracer) : store;
}

/** A store whose reads are part of the trace in which a file was opened. */
function readsTraced(inner: NarStore, tracer: Tracer): NarStore {
  return {
    async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
      if (tracer.ids() === undefined) return await inner.open(at, options);
      const run = tracer.here();
      const stored = await inner.open(at, options);
      return stored && readsBelow(stored, run);
    },
    put: (at, path) => inner.put(at, path),
    remove: (at) => inner.remove(at),
    list: (prefix, options) => inner.list(prefix, options),
  };
}

function readsBelow(stored: StoredNar, run: RunBelow): StoredNar {
  const { fileSize, seal } = stored;
  return {
    ...{ fileSize, seal },
    bytes: (options) => run(() => stored.bytes(options)),
    read: (start, end, options) => streamBelow(stored.read(start, end, options), run),
    [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
  };
}

/** The server reads a body outside of its request's span. */
function streamBelow(body: ReadableStream<Bytes>, run: RunBelow): ReadableStream<Bytes> {
  const reader = body.getReader();
  return streamFrom({
    next: async () => (await run(() => reader.read())).value,
    cancel: (reason) => reader.cancel(reason),
  });
}
