import type { Logger } from "../../telemetry/logger.ts";
import type { UpstreamReading } from "../../upstream/upstream.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { AttemptLogDeps } from "../sources/attempt_log.ts";
import type { RunDownloadDeps } from "./run_download.ts";

export interface PrefetchDownloadParts {
  readonly pool: Pick<UpstreamPool, "isSpare">;
  /** False until a client joins. */
  readonly isWanted: () => boolean;
}

/**
 * The same for a prefetch. It uses upstreams with capacity to spare alone, and evicts no entry that
 * was used within the hour. Its failures touch neither the log nor an upstream's health. All of
 * that ends when a client joins.
 */
export function prefetchDeps(
  deps: RunDownloadDeps,
  { pool, isWanted }: PrefetchDownloadParts,
): RunDownloadDeps {
  const { attempts: { candidates, logging }, space } = deps;
  return {
    ...deps,
    attempts: {
      ...deps.attempts,
      candidates: { ...candidates, pool: sparePool(candidates.pool, pool, isWanted) },
      logging: { ...logging, ...quietLogging(logging, isWanted) },
    },
    space: {
      budget: space.budget,
      get ledgerFailure() {
        return space.ledgerFailure;
      },
      mayFit: (bytes) => space.mayFit(bytes),
      reserve: (bytes) => isWanted() ? space.reserve(bytes) : space.reserveSpare(bytes),
      grow: (reservation, bytes) =>
        isWanted() ? space.grow(reservation, bytes) : space.growSpare(reservation, bytes),
      reserveSpare: (bytes) => space.reserveSpare(bytes),
      growSpare: (reservation, bytes) => space.growSpare(reservation, bytes),
      kept: (reservation) => space.kept(reservation),
      diskFull: () => {
        if (isWanted()) space.diskFull();
      },
    },
    outages: quietOutages(deps.outages, isWanted),
  };
}

type CandidatesPool = RunDownloadDeps["attempts"]["candidates"]["pool"];

function sparePool(
  pool: CandidatesPool,
  spare: Pick<UpstreamPool, "isSpare">,
  isWanted: () => boolean,
): CandidatesPool {
  return {
    order: (kind) => pool.order(kind),
    waitOf: (url) => isWanted() || spare.isSpare(url) ? pool.waitOf(url) : "none",
    narinfo: (storePathHash, options) =>
      isWanted() ? pool.narinfo(storePathHash, options) : Promise.resolve({ kind: "unknown" }),
    probeIfDown: async (urls, kind) => {
      if (isWanted()) await pool.probeIfDown(urls, kind);
    },
  };
}

function quietLogging({ pool, log }: AttemptLogDeps, isWanted: () => boolean) {
  return {
    log: quietLog(log, isWanted),
    pool: {
      noteNar: (url: string, reading: UpstreamReading) => {
        if (isWanted() || reading.kind !== "failed") pool.noteNar(url, reading);
      },
      noteNarTime: (url: string, tookMs: number) => pool.noteNarTime(url, tookMs),
      busy: (url: string) => pool.busy(url),
      has: (url: string) => pool.has(url),
    },
  };
}

function quietOutages(
  outages: RunDownloadDeps["outages"],
  isWanted: () => boolean,
): RunDownloadDeps["outages"] {
  return {
    failed: (...failure) => {
      if (isWanted()) outages.failed(...failure);
    },
    noRoom: (fileSize, facts) => {
      if (isWanted()) outages.noRoom(fileSize, facts);
    },
    kept: (fileSize) => outages.kept(fileSize),
  };
}

/** Logs failures at `debug` until `isWanted`. */
function quietLog(log: Logger, isWanted: () => boolean): Logger {
  return {
    ...log,
    event: (kind, facts, level) => log.event(kind, facts, isWanted() ? level : "debug"),
  };
}
