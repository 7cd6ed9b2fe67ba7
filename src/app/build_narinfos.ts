import type { Downloads } from "../cache/download/downloads.ts";
import { NarinfoRefresh } from "../cache/narinfo/narinfo_refresh.ts";
import { NarinfoFetches } from "../cache/narinfo/narinfo_fetches.ts";
import type { KeptNars } from "../cache/kept/kept_nars.ts";
import type { NegativeCache } from "../cache/narinfo/negative_cache.ts";
import { createSigner } from "../cache/narinfo/own_signature.ts";
import { NarinfoServer } from "../cache/narinfo/serve_narinfo.ts";
import { Prefetch } from "../cache/prefetch/prefetch.ts";
import { NO_PREFETCH } from "../cache/prefetch/prefetch_ports.ts";
import type { Demotions } from "../cache/sources/demotions.ts";
import type { StorePathNames } from "../cache/store_path_names.ts";
import type { Touches } from "../cache/touches.ts";
import { signedPathsMax } from "../metadata/signed_path_keeper.ts";
import type { Space } from "../space/space.ts";
import type { Loops } from "../upstream/loops.ts";
import type { UpstreamPool } from "../upstream/upstream_pool.ts";
import type { AppParts } from "./app_parts.ts";

/** Objects that narinfos share with the rest of the cache. */
export interface NarinfoNeighbours {
  readonly pool: UpstreamPool;
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly touches: Touches;
  readonly downloads: Downloads;
  readonly kept: KeptNars;
  readonly space: Space;
  readonly names: Pick<StorePathNames, "note">;
  readonly loops: Pick<Loops, "isPassedOn">;
}

/** Wires narinfos, and the prefetch for the clients that request them. */
export function buildNarinfos(parts: AppParts, neighbours: NarinfoNeighbours) {
  const { nowMs, fetching, stores: { metadata, leases, storedPaths: stored } } = parts;
  const { log, metrics } = parts.telemetry;
  const { pool, negative, demotions, touches, downloads, kept, space, names, loops } = neighbours;
  const signer = createSigner(parts.identity.secretKey);
  const narinfoFetches = new NarinfoFetches({
    ...{ metadata, names, pool, signer, nowMs, memory: { negative, demotions }, leases, loops, log },
    signedPathsMax: () => signedPathsMax(parts.stores.space.limit.bytes),
  });
  const prefetch = fetching.prefetch && new Prefetch({
    narinfos: { narinfoFetches, metadata, negative, pool },
    nars: {
      ...{ metadata, downloads, pool },
      hasRoom: (fileSize) => space.hasSpare(fileSize),
      fileBytesMax: fetching.prefetch.narBytesMax,
    },
    metrics,
    nowMs,
  });
  const refreshMs = fetching.narinfoRefreshMs;
  const narinfos = new NarinfoServer({
    rows: { metadata, signer },
    ...{ stored, kept, narinfoFetches, negative, demotions, touches, loops, nowMs, log },
    refresh: new NarinfoRefresh({ pool, metadata, refreshMs, nowMs, log }),
    isUpstream: (url) => pool.has(url),
    prefetch: prefetch ?? NO_PREFETCH,
  });
  return { narinfos, narinfoFetches, prefetch };
}
