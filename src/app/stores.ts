import { recover } from "../space/recover.ts";
import type { ChangeFeed } from "../metadata/change_feed.ts";
import { HotMetadataStore } from "../metadata/hot_metadata_store.ts";
import { HotNarStore } from "../storage/hot_nar_store.ts";
import { WorkFolder } from "../storage/local/work_folder.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { openBackEnds, type StorePlaces } from "./back_ends/back_ends.ts";
import type { Folders } from "./folders.ts";
import { tracedMetadata, tracedNars } from "./traced_stores.ts";

/** Measured: with files of 50 KiB it doubles the answers a second, for its size in memory. */
const HOT_NARS = { fileBytesMax: 256 * 1024, totalBytesMax: 16 << 20 };

/** The open back ends. Unfinished work of dead processes is settled. */
export interface Stores extends AsyncDisposable {
  /** Reports other processes' writes to the database. */
  readonly changes: ChangeFeed;
  /** The same, with frequent entries in memory. */
  readonly metadata: HotMetadataStore;
  readonly nars: HotNarStore;
  readonly workFolder: WorkFolder;
  /** Settles the unfinished work of processes that died meanwhile. */
  settle(): Promise<void>;
}

/**
 * Opens the back ends, traced if there is a `tracer`. Throws a Failure that names an unusable one.
 */
export async function openStores(
  places: StorePlaces,
  folders: Pick<Folders, "temp" | "locks">,
  log: Logger,
  tracer?: Tracer,
): Promise<Stores> {
  await using opened = new AsyncDisposableStack();
  const { metadata: database, nars: narFiles } = opened.use(await openBackEnds(places));
  const metadata = new HotMetadataStore(tracer ? tracedMetadata(database, tracer) : database, log);
  opened.use(database.subscribe((changed) => metadata.forgetChanged(changed)));
  const nars = new HotNarStore(tracer ? tracedNars(narFiles, tracer) : narFiles, HOT_NARS);
  const nowMs = Date.now;
  const workFolder = opened.use(new WorkFolder(folders.temp, { locks: folders.locks, nowMs, log }));
  const isAlive = (owner: string) => workFolder.isAlive(owner);
  const settle = () => recover({ metadata, nars, isAlive, log });
  await settle();
  workFolder.survey();
  const resources = opened.move();
  const dispose = () => resources.disposeAsync();
  return { changes: database, metadata, nars, workFolder, settle, [Symbol.asyncDispose]: dispose };
}
