import type { InFlight } from "../cache/fetch/transfer_progress.ts";
import { type Counters, History } from "../history/history.ts";
import type { Space } from "../space/space.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AppParts } from "./app_parts.ts";

export interface HistorySubjects {
  readonly space: Space;
  readonly inFlight: InFlight;
}

/** Wires the past of this storage to the counters of this process. */
export function buildHistory(parts: AppParts, { space, inFlight }: HistorySubjects): History {
  const { nowMs, stores: { metadata }, telemetry: { log, metrics } } = parts;
  return new History({
    keeper: metadata,
    counters: () => countersOf(metrics),
    storedBytes: () => space.budget.usedBytes,
    inFlight: () => inFlight.count,
    nowMs,
    log,
  });
}

const KINDS = ["narinfo", "nar"] as const;

function countersOf(metrics: Pick<Metrics, "value">): Counters {
  const requests = (kind: "narinfo" | "nar", result: "hit" | "joined" | "miss" | "prefetched") =>
    metrics.value("cache_requests_total", { kind, result });
  const served = (source: "hit" | "joined" | "miss" | "prefetched") =>
    sum(KINDS.map((kind) => metrics.value("served_bytes_total", { kind, source })));
  const saved_bytes = served("hit") + served("joined");
  return {
    narinfo_hits: requests("narinfo", "hit") + requests("narinfo", "joined"),
    narinfo_misses: requests("narinfo", "miss") + requests("narinfo", "prefetched"),
    nar_hits: requests("nar", "hit") + requests("nar", "joined"),
    nar_misses: requests("nar", "miss") + requests("nar", "prefetched"),
    absent: sum(
      KINDS.map((kind) => metrics.value("cache_requests_total", { kind, result: "negative" })),
    ),
    served_bytes: saved_bytes + served("miss") + served("prefetched"),
    fetched_bytes: metrics.value("upstream_bytes_total", {}),
    saved_bytes,
    evicted_bytes: metrics.value("evicted_bytes_total", {}),
    evicted_entries: metrics.value("evicted_entries_total", {}),
  };
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
