import denoJson from "../../deno.json" with { type: "json" };
import { Failure } from "../base/failure.ts";
import {
  BinaryCacheSource,
  type CacheReader,
  FolderReader,
  UpstreamReader,
  type WantedPaths,
} from "../cache/import/binary_cache/binary_cache_source.ts";
import type { ImportProgress, ImportWatcher } from "../cache/import/importer.ts";
import type { Handling } from "../cache/import/import_nar.ts";
import { DECODER_HERE, decodingWith } from "../cache/verify/decode_encoded.ts";
import type { Settings } from "../config/options.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { TrustedKeys } from "../nix/trusted_keys.ts";
import { clock } from "../runtime/current.ts";
import { SYSTEM_NET } from "../runtime/system_net.ts";
import { createUpstreamClient } from "../upstream/http/upstream_fetch.ts";
import { HttpNarinfoFetcher, HttpNarinfoSource } from "../upstream/http/http_narinfo_source.ts";
import { HttpNarSource } from "../upstream/http/http_nar_source.ts";
import { importInto } from "./import.ts";
import { caCertificates, upstreamSettings } from "./upstream_settings.ts";

/** Place of the other cache. */
export type CachePlace =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "url"; readonly url: string };

export interface CacheImportOrder {
  readonly place: CachePlace;
  /** Roots of the closures to import; empty: all entries of the folder. */
  readonly roots: readonly StorePathHash[];
  readonly handling: Handling;
  readonly signal: AbortSignal;
}

/** Brings paths of a binary cache into the storage of the settings. */
export async function importCache(
  settings: Settings,
  { place, roots, handling, signal }: CacheImportOrder,
  watcher: ImportWatcher,
): Promise<ImportProgress> {
  await using source = place.kind === "folder"
    ? folderSource(place.path, roots)
    : new BinaryCacheSource(await upstreamReader(settings, place.url), {
      roots,
      hasClosures: true,
    });
  const order = { handling, signal, sourceKey: undefined };
  return await importInto(settings, source, order, watcher);
}

function folderSource(path: string, roots: readonly StorePathHash[]): BinaryCacheSource {
  const reader = new FolderReader(path, () => clock.wallMs());
  const all = reader.list();
  const wanted: WantedPaths = roots.length > 0
    ? { roots, hasClosures: true }
    : { roots: all, hasClosures: false };
  return new BinaryCacheSource(reader, wanted);
}

/** Reader of a binary cache with the timeouts, credentials and certificates of an upstream. */
async function upstreamReader(settings: Settings, url: string): Promise<CacheReader> {
  const asUpstream = { ...settings, "cache.upstream-url": [{ url }] };
  const [http] = await upstreamSettings(asUpstream, `larder/${denoJson.version}`);
  if (http === undefined) throw new Failure("broken", `Cannot import ${url}`);
  const client = createUpstreamClient(SYSTEM_NET, await caCertificates(asUpstream));
  const keys = new TrustedKeys([]);
  // The import itself compares signatures.
  const shared = { settings: http, client, decode: decodingWith(DECODER_HERE) };
  const fetcher = new HttpNarinfoFetcher({ ...shared, keys, requireSignature: false });
  return new UpstreamReader({
    narinfos: new HttpNarinfoSource({ ...shared, fetcher }),
    nars: new HttpNarSource({ settings: http, client }),
    idleTimeoutMs: http.idleTimeoutMs,
    nowMs: () => clock.wallMs(),
    close: () => client[Symbol.dispose](),
  });
}
