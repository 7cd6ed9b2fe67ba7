import { WORKER_THREADS } from "../runtime/threads.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import { Importer } from "../cache/import/importer.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import type { ImportSource } from "../cache/import/import_source.ts";
import { KeptNars } from "../cache/kept/kept_nars.ts";
import { createSigner } from "../cache/narinfo/serve_narinfo.ts";
import { NarinfoUploads } from "../cache/upload/narinfo_uploads.ts";
import { SignedPaths } from "../cache/upload/signed_paths.ts";
import type { Settings } from "../config/options.ts";
import { signedPathsMax } from "../metadata/metadata_store.ts";
import type { PublicKey, SecretKey } from "../nix/signature.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import { clock } from "../runtime/current.ts";
import { ActiveReads } from "../space/active_reads.ts";
import { assembleSpace } from "../space/assemble_space.ts";
import { BEAT_EVERY_MS } from "../space/recover.ts";
import type { Space } from "../space/space.ts";
import { SILENT } from "../telemetry/logger.ts";
import { type Folders, prepareFolders, storePlaces } from "./folders.ts";
import { presentKey } from "./own_key.ts";
import { LOOK_AT_DISK_EVERY_MS, sizeLimitOf } from "./size_limit_of.ts";
import { openStores, type Stores } from "./stores.ts";
import { WorkerVerifier } from "./workers/worker_verifier.ts";

export interface ImportOrder {
  readonly handling: Handling;
  /** The key of the other cache, trusted like those of the settings. */
  readonly sourceKey: PublicKey | undefined;
  readonly signal: AbortSignal;
}

/** Brings everything in `source` into the storage of the settings, also while a server runs. */
export async function importInto(
  settings: Settings,
  source: ImportSource,
  order: ImportOrder,
  watcher: ImportWatcher,
): Promise<ImportProgress> {
  const folders = prepareFolders(settings);
  await using stores = await openStores(storePlaces(settings), folders, SILENT);
  // Without a key the server makes one, and signs the narinfos that it serves.
  const secretKey = await presentKey(settings, folders.storage, stores.keys);
  const reads = new ActiveReads();
  await using space = await openSpace({ settings, folders, stores, reads });
  using _beats = repeated(BEAT_EVERY_MS, async () => {
    await space.beat();
    // Reads the writes of other members.
    await space.refresh();
  });
  using _looks = repeated(LOOK_AT_DISK_EVERY_MS, () => space.lookAtDisk());
  const threads = settings["cache.verify-threads"];
  using verifier = new WorkerVerifier(WORKER_THREADS, threads);
  const importer = new Importer(
    {
      ...partsOf(stores, { space, reads }, secretKey),
      nars: narsOf(stores, space, { handling: order.handling, verifier }),
      trust: trustOf(settings, [order.sourceKey, secretKey?.publicKey]),
      entriesAtOnce: threads + 1,
    },
    watcher,
    order.signal,
  );
  return await importer.run(source);
}

async function openSpace({ settings, folders, stores, reads }: {
  readonly settings: Settings;
  readonly folders: Folders;
  readonly stores: Stores;
  readonly reads: ActiveReads;
}): Promise<Space> {
  const { metadata, nars, member, graceMs, nowMs } = stores;
  const place = { limit: sizeLimitOf(settings, folders), owner: member, graceMs };
  const users = { reads, flushTouches: () => Promise.resolve() };
  const parts = { metadata, nars, nowMs, log: SILENT, observe: () => undefined };
  const space = assembleSpace(place, users, parts);
  await space.open();
  return space;
}

function partsOf(
  { metadata, nars, nowMs }: Stores,
  { space, reads }: { readonly space: Space; readonly reads: ActiveReads },
  secretKey: SecretKey | undefined,
) {
  const { sweeper } = space;
  const changed = () => space.changed();
  const kept = new KeptNars({
    ...{ metadata, nars, sweeper, changed, nowMs, log: SILENT },
    downloads: { has: () => false },
  });
  // An import is no use of its entries.
  const ignored = () => undefined;
  const touches = { narinfo: ignored, nar: ignored, document: ignored };
  // Its caller says of each entry whether a trusted key has signed it.
  const trust = { refusal: () => undefined, isSigned: () => false };
  const countMax = () => signedPathsMax(space.budget.limitBytes);
  const narinfos = new NarinfoUploads({
    rows: { metadata, signer: createSigner(secretKey) },
    entries: { kept: presentIn(nars), reads, touches },
    trust,
    signedPaths: new SignedPaths({ metadata, upstreams: undefined, countMax }),
    negative: { remove: () => undefined },
    ...{ nowMs, changed, log: SILENT },
  });
  return { metadata, kept, narinfos };
}

/** Opens files without a look at their seals: the importer itself has just read their bytes. */
function presentIn(nars: Stores["nars"]): Pick<KeptNars, "open"> {
  return {
    async open({ kept }, _requestId, options) {
      const stored = kept && await nars.open(kept.at, options);
      if (kept === undefined || stored === undefined) return undefined;
      if (stored.fileSize === kept.fileSize) return { kept, stored };
      await stored[Symbol.asyncDispose]();
      return undefined;
    },
  };
}

interface NarParts {
  readonly handling: Handling;
  readonly verifier: WorkerVerifier;
}

function narsOf(stores: Stores, space: Space, { handling, verifier }: NarParts) {
  const { metadata, nars, member, spool, nowMs } = stores;
  return {
    publishing: { metadata, nars, nowMs, owner: member },
    space: withoutEviction(space),
    verifier,
    folder: spool.path,
    handling,
  };
}

/** Nothing stored goes for an import: it brings the hottest entries first. */
function withoutEviction(
  space: Space,
): Pick<Space, "fits" | "reserve" | "grow" | "kept" | "budget"> {
  const { budget } = space;
  const fits = async (bytes: number) => {
    if (bytes > budget.freeBytes) await space.refresh();
    return bytes <= budget.freeBytes;
  };
  return {
    budget,
    fits,
    reserve: async (bytes) => await fits(bytes) ? await space.reserve(bytes) : undefined,
    grow: async (reservation, bytes) =>
      await fits(bytes) ? await space.grow(reservation, bytes) : false,
    kept: (reservation) => space.kept(reservation),
  };
}

function trustOf(settings: Settings, further: readonly (PublicKey | undefined)[]) {
  const own = further.filter((key) => key !== undefined);
  const { "cache.upstream-public-key": upstream, "cache.trusted-upload-key": uploads } = settings;
  const keys = new TrustedKeys([...upstream, ...uploads, ...own]);
  return { keys, isRequired: settings["cache.require-upstream-signature"] };
}

function repeated(everyMs: number, work: () => Promise<void>): Disposable {
  const timer = clock.every(everyMs, () => void work());
  return { [Symbol.dispose]: () => timer.cancel() };
}
