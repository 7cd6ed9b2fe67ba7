import { type MemberId, newMemberId } from "../base/member_id.ts";
import { isPublishing } from "../cache/nar/publish_nar.ts";
import { tryStoring } from "../cache/nar/try_storing.ts";
import type { StorageClaim } from "../cache/reconcile/storage_claim.ts";
import { clock } from "../runtime/current.ts";
import { recover, settlingOutage } from "../space/recover.ts";
import type { ChangeFeed } from "../metadata/change_feed.ts";
import type { KeyKeeper } from "../metadata/key_keeper.ts";
import type { MemberBoard } from "../metadata/member_board.ts";
import { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import type { StorageIdKeeper } from "../metadata/storage_id_keeper.ts";
import { StoredPaths } from "../metadata/stored_paths.ts";
import type { NarLocator } from "../storage/nar_store.ts";
import { HotNarStore } from "../storage/hot_nar_store.ts";
import { WatchedNarStore } from "../storage/watched_nar_store.ts";
import { LocalSpool } from "../storage/local/local_spool.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { operationMeter } from "../telemetry/operation_meter.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { openBackEnds, type StorePlaces } from "./back_ends/back_ends.ts";
import { hasEnded } from "./back_ends/ended_process.ts";
import type { Folders } from "./folders.ts";
import { meteredBoard, meteredFolder, meteredMetadata } from "./metered_stores.ts";
import { SharedClock } from "./shared_clock.ts";
import { SharedFileWatch } from "./shared_file_watch.ts";
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
