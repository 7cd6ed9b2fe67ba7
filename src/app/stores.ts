import { messageOf } from "../base/failure.ts";
import { isOfHost, type MemberId, newMemberId } from "../base/member_id.ts";
import { isPublishing } from "../cache/nar/publish_nar.ts";
import { tryStoring } from "../cache/nar/try_storing.ts";
import type { StorageClaim } from "../cache/reconcile/storage_claim.ts";
import type { ChangeFeed } from "../metadata/change_feed.ts";
import { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import type { KeyKeeper, StorageIdKeeper } from "../metadata/metadata_store.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import type { SpaceLedger } from "../metadata/space_keeper.ts";
import { StoredPaths } from "../metadata/stored_paths.ts";
import { clock } from "../runtime/current.ts";
import { BEAT_EVERY_MS, recover, settlingOutage } from "../space/recover.ts";
import { HotNarStore } from "../storage/hot_nar_store.ts";
import { LocalSpool } from "../storage/local/local_spool.ts";
import type { NarLocator } from "../storage/nar_store.ts";
import { WatchedNarStore } from "../storage/watched_nar_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { operationMeter } from "../telemetry/operation_meter.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { openBackEnds, type StorePlaces } from "./back_ends/back_ends.ts";
import { hasEnded } from "./back_ends/ended_process.ts";
import type { Folders } from "./folders.ts";
import { meteredBoard, meteredFolder, meteredMetadata } from "./metered_stores.ts";
import { tracedMetadata, tracedNars } from "./traced_stores.ts";

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
