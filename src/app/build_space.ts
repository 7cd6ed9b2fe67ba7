import type { Downloads } from "../cache/download/downloads.ts";
import { KeptNars } from "../cache/kept/kept_nars.ts";
import { Remover } from "../cache/remove.ts";
import type { Touches } from "../cache/touches.ts";
import { NO_OTHER_MEMBERS } from "../locks/work_leases.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { ActiveReads } from "../space/active_reads.ts";
import type { RunFigures } from "../space/evictor.ts";
import { assembleSpace } from "../space/assemble_space.ts";
import type { Space } from "../space/space.ts";
import { traced, type Tracer } from "../telemetry/tracer.ts";
import type { AppParts } from "./app_parts.ts";

/** Wires the size limit to the stores. */
export function buildSpace(
  parts: AppParts,
  { reads, touches }: {
    readonly reads: ActiveReads;
    readonly touches: Pick<Touches, "flush">;
  },
) {
  const {
    nowMs,
    stores: { metadata, nars, leases = NO_OTHER_MEMBERS },
    telemetry: { log, metrics },
  } = parts;
  const entries = metrics.series("evicted_entries_total", {});
  const bytes = metrics.series("evicted_bytes_total", {});
  const durations = metrics.histogram("eviction_duration_seconds", {});
  const observe = ({ evictedEntries, freedBytes, durationMs }: RunFigures & RunDuration) => {
    entries.add(evictedEntries);
    bytes.add(freedBytes);
    durations.observe(durationMs / 1_000);
  };
  const users = { reads, flushTouches: () => touches.flush() };
  const space = assembleSpace(parts.stores.space, users, {
    ...{ metadata, nars, leases, nowMs, log, observe },
  });
  const { budget } = space;
  metrics.gauge("cache_size_bytes", {}, () => budget.usedBytes);
  metrics.gauge("database_bytes", {}, () => budget.seen.database.bytes);
  metrics.gauge("cache_max_size_bytes", {}, () => {
    return budget.limitBytes === Infinity ? 0 : budget.limitBytes;
  });
  return space;
}

interface RunDuration {
  readonly durationMs: number;
}

/** The DELETE handlers of narinfos and NARs; none unless the settings allow them. */
export function buildRemover(parts: AppParts, space: Space, reads: ActiveReads) {
  if (!parts.writes.allowDelete) return { narinfos: {}, nars: {} };
  const remover = new Remover({
    metadata: parts.stores.metadata,
    sweeper: space.sweeper,
    reads,
    changed: () => void space.altered(),
  });
  return {
    narinfos: { remove: (storePathHash: StorePathHash) => remover.narinfo(storePathHash) },
    nars: { remove: (narName: NarName) => remover.nar(narName) },
  };
}

/** Wires the kept NAR files to the stores. */
export function buildKeptNars(
  { stores: { metadata, nars }, telemetry: { log }, nowMs }: AppParts,
  { downloads, space }: { readonly downloads: Downloads; readonly space: Space },
): KeptNars {
  const { sweeper } = space;
  const changed = () => void space.altered();
  return new KeptNars({ metadata, nars, sweeper, downloads, changed, nowMs, log });
}

/** A space with a span for each wait. */
export function tracedSpace(inner: Space, tracer: Tracer): Space {
  return traced(inner, tracer, {
    reserve: { name: "wait for space" },
    grow: { name: "wait for more space" },
  });
}
