import { CacheFolder } from "../cache/export/cache_folder.ts";
import {
  exportClosures,
  type ExportProgress,
  type ExportWatcher,
} from "../cache/export/export_closures.ts";
import { createSigner } from "../cache/narinfo/serve_narinfo.ts";
import type { Settings } from "../config/options.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { openPresentBackEnds } from "./back_ends/back_ends.ts";
import { storageFolder, storePlaces } from "./folders.ts";
import { presentKey } from "./own_key.ts";

export interface ExportOrder {
  readonly folder: string;
  readonly roots: readonly StorePathHash[];
  readonly signal: AbortSignal;
}

/** Writes closures of the settings' storage as a binary cache, also while a server runs. */
export async function exportStorage(
  settings: Settings,
  { folder, roots, signal }: ExportOrder,
  watcher: ExportWatcher,
): Promise<ExportProgress> {
  await using backEnds = await openPresentBackEnds(storePlaces(settings));
  const { metadata, nars } = backEnds;
  const signer = createSigner(await presentKey(settings, storageFolder(settings), metadata.keys));
  const deps = { metadata, nars, signer, folder: new CacheFolder(folder) };
  return await exportClosures(deps, roots, watcher, signal);
}
