import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import { NginxSource } from "../cache/import/nginx/nginx_source.ts";
import type { Settings } from "../config/options.ts";
import { importInto } from "./import.ts";

export interface NginxImportOrder {
  /** Folder of `proxy_cache_path`. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Brings the cached files of an nginx into the storage of the settings. */
export async function importNginx(
  settings: Settings,
  { folder, signal }: NginxImportOrder,
  watcher: ImportWatcher,
): Promise<ImportProgress> {
  await using source = await NginxSource.open(folder, signal);
  const order = { handling: "copy", signal, sourceKey: undefined } as const;
  return await importInto(settings, source, order, watcher);
}
