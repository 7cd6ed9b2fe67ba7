import type { BackEnd } from "../telemetry/instruments/operation_labels.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { DATABASE, DISK, STORAGE } from "../telemetry/events.ts";
import type { Problem, RecentProblems } from "../telemetry/recent_problems.ts";
import type { StorePlaces } from "./back_ends/back_ends.ts";

export interface BackEndGaugesDeps {
  readonly metrics: Pick<Metrics, "gauge">;
  /** Present problems: the same outages as on the page. */
  readonly problems: Pick<RecentProblems, "list">;
  readonly nars: Pick<StorePlaces["nars"], "kind">;
  readonly hasRedis: boolean;
}

/** Registers the gauge of each back end: 0 during an outage of it. */
export function backEndGauges({ metrics, problems, nars, hasRedis }: BackEndGaugesDeps): void {
  // A folder fails with its disk. Beside a bucket, the disk has partial files alone.
  const ofStorage: readonly string[] = nars.kind === "local" ? [STORAGE, DISK] : [STORAGE];
  const outages: Readonly<Record<BackEnd, (problem: Problem) => boolean>> = {
    database: ({ part }) => part === DATABASE,
    storage: ({ part }) => ofStorage.includes(part),
    // A lock that another member keeps is of the same kind, and no outage of Redis.
    redis: ({ event }) => event === "redis-away",
  };
  const isUp = (backend: BackEnd) =>
    !problems.list().some((one) => one.overAtMs === undefined && outages[backend](one));
  for (const backend of ["database", "storage", ...hasRedis ? ["redis" as const] : []] as const) {
    metrics.gauge("backend_up", { backend }, () => Number(isUp(backend)));
  }
}
