import { NarCopy, type NarCopyProgress, type NotCopied } from "../cache/migrate/copy_nars.ts";
import { StorageClaim } from "../cache/reconcile/storage_claim.ts";
import { Failure } from "../base/failure.ts";
import { removeIfPresent } from "../base/files.ts";
import type { Settings } from "../config/options.ts";
import type { SpaceLedger } from "../metadata/space_keeper.ts";
import { isDead } from "../space/recover.ts";
import { openPresentBackEnds, storeNamesOf } from "./back_ends/back_ends.ts";
import { checkNars, openNars } from "./back_ends/nar_back_end.ts";
import { hasEnded } from "./back_ends/ended_process.ts";
import { narPlaceAt, type StoragePlace, storePlaces, tempFolderOf } from "./folders.ts";

/** A server that stores NARs all the time never lets a pass find nothing. */
const PASSES_MAX = 5;

/** Folder beside those of members, which have other names. */
const FOLDER_NAME = "migrate-storage";

/** No member: it only looks for members. */
const OBSERVER = "";

export interface StorageMove {
  readonly from: StoragePlace;
  readonly to: StoragePlace;
  readonly signal: AbortSignal;
  /** Called with the copy, whose progress goes on. */
  readonly started: (copy: { readonly progress: NarCopyProgress }) => void;
}

export interface StorageMoved {
  /** NAR files that all passes have copied, and their bytes. */
  readonly copied: number;
  readonly copiedBytes: number;
  /** NAR files that the last pass compared. */
  readonly compared: number;
  /** NAR files that differ in the old storage from the database's facts. */
  readonly notCopied: readonly NotCopied[];
  /** True if the last pass found nothing to copy. */
  readonly isSame: boolean;
  /** True if a larder uses the database: it needs the seals of the old storage. */
  readonly isUsed: boolean;
}

/**
 * Copies the NAR files of the settings' database to another place, until a pass finds nothing to
 * copy. Throws a Failure for an unusable place, and for one of another database.
 */
export async function migrateStorage(
  settings: Settings,
  { from, to, signal, started }: StorageMove,
): Promise<StorageMoved> {
  await using opened = new AsyncDisposableStack();
  const { database } = storePlaces(settings);
  const source = opened.use(
    await openPresentBackEnds({ database, nars: narPlaceAt(settings, from) }),
  );
  const { metadata } = source;
  const places = { database, nars: narPlaceAt(settings, to) };
  if (!await checkNars(places.nars)) {
    throw new Failure(
      "broken",
      `Cannot migrate storage: ${storeNamesOf(places).names.store} is silent`,
    );
  }
  const target = opened.use(await openNars(places.nars));
  await new StorageClaim({ ...target, metadata, ...storeNamesOf(places) }).confirm();
  const folder = opened.use(emptyFolder(`${tempFolderOf(settings, to)}/${FOLDER_NAME}`));
  const copy = new NarCopy({ metadata, from: source.nars, to: target.nars, folder: folder.path });
  started(copy);
  const moved = await copyAll(copy, signal);
  const isUsed = await isUsedBySomebody(metadata);
  if (!isUsed) await copy.seal(signal);
  return { ...moved, notCopied: copy.notCopied, isUsed };
}

async function copyAll(copy: NarCopy, signal: AbortSignal) {
  let [copied, copiedBytes] = [0, 0];
  for (let pass = 1;; pass++) {
    const last = await copy.pass(signal);
    copied += last.copied;
    copiedBytes += last.copiedBytes;
    const isSame = last.copied === 0;
    if (isSame || pass === PASSES_MAX) {
      return { copied, copiedBytes, compared: last.compared, isSame };
    }
  }
}

async function isUsedBySomebody(ledger: Pick<SpaceLedger, "members">): Promise<boolean> {
  return (await ledger.members(OBSERVER)).some((member) => !isDead(member, hasEnded));
}

/** Makes an empty folder at `path`, without the remains of an earlier copy. */
function emptyFolder(path: string): Disposable & { readonly path: string } {
  const remove = () => removeIfPresent(path, { recursive: true });
  remove();
  Deno.mkdirSync(path, { recursive: true });
  return { path, [Symbol.dispose]: remove };
}
