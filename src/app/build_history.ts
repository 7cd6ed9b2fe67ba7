import type { InFlight } from "../cache/fetch/transfer_progress.ts";
import { type Counters, History } from "../history/history.ts";
import { requestStats, trafficStats } from "../http/stats/gather_stats.ts";
import type { Space } from "../space/space.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AppParts } from "./app_parts.ts";

export interface HistorySubjects {
  readonly space: Space;
  readonly inFlight: InFlight;
}

/** Wires the past of this storage to the counters of this process. */
export function buildHistory(parts: AppParts, { space, inFlight }: HistorySubjects): History {
  const { nowMs, stores: { metadata }, telemetry: { log, metrics, members } } = parts;
  return new History({
    keeper: metadata,
    counters: () => countersOf(metrics),
    storedBytes: () => space.budget.usedBytes,
    inFlight: () => inFlight.count,
    nowMs,
    log,
    hasOthers: members?.isShared ?? false,
  });
}

function countersOf(metrics: Pick<Metrics, "value">): Counters {
  const [narinfo, nar] = [requestStats(metrics, "narinfo"), requestStats(metrics, "nar")];
  const { served_bytes, upstream_bytes: fetched_bytes, saved_bytes } = trafficStats(metrics);
  return {
    narinfo_hits: narinfo.hits + narinfo.joined,
    narinfo_misses: narinfo.misses + narinfo.prefetched,
    nar_hits: nar.hits + nar.joined,
    nar_misses: nar.misses + nar.prefetched,
    absent: narinfo.absent + nar.absent,
    ...{ served_bytes, fetched_bytes, saved_bytes },
    evicted_bytes: metrics.value("evicted_bytes_total", {}),
    evicted_entries: metrics.value("evicted_entries_total", {}),
  };
}
