import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";
import { begunBy, endedBy, OUTAGES } from "./outages.ts";

/** Failures of the outage may come so long after its end. */
const LATE_MS = 1_000;

/** Events that a silent database causes. Its outages are rows with `needsDatabase`. */
const EVENTS: ReadonlySet<string> = new Set([
  "busy nars not counted",
  "counting pinned closures failed",
  "damaged nar not removed",
  "document not kept",
  "download failed",
  "eviction failed",
  "expired uploads not removed",
  "member not registered",
  "narinfo not kept",
  "received nar not kept",
  "seal not written",
  "search for dead members failed",
  "unused metadata not removed",
  "upload failed",
]);

export interface QuietParts {
  readonly log: Logger;
  /** Logs failures that the database's own line explains already. */
  readonly quiet: Pick<Logger, "debug">;
  readonly nowMs: () => number;
}

/**
 * The same logger, which logs failures at debug while the database does not answer: its own outage
 * says so once for all. A failure that lasts longer is logged afterwards.
 */
export function quietWithoutDatabase({ log, quiet, nowMs }: QuietParts): Logger {
  let awayUntilMs = -Infinity;
  /** The kinds of outages that need the database: true for those that the log shows. */
  const shown = new Map<string, boolean>();
  const fail = (level: "warn" | "error", message: string, facts?: Facts) => {
    const begun = begunBy(message);
    if (message in OUTAGES.database.begins) awayUntilMs = Infinity;
    const needsDatabase = begun?.needsDatabase ?? EVENTS.has(message);
    const isQuiet = needsDatabase && nowMs() < awayUntilMs;
    if (begun?.needsDatabase && !(isQuiet && shown.has(begun.kind))) {
      shown.set(begun.kind, !isQuiet);
    }
    if (isQuiet) quiet.debug(message, facts);
    else log[level](message, facts);
  };
  return {
    debug(message, facts) {
      const begun = begunBy(message);
      // An outage logs its repeats at debug, although its first failure was quiet.
      if (begun && shown.get(begun.kind) === false) fail(begun.level, message, facts);
      else log.debug(message, facts);
    },
    info(message, facts) {
      if (message === OUTAGES.database.over) awayUntilMs = nowMs() + LATE_MS;
      const ended = endedBy(message);
      if (ended && shown.get(ended.kind) === false) return quiet.debug(message, facts);
      if (ended) shown.delete(ended.kind);
      log.info(message, facts);
    },
    warn: (message, facts) => fail("warn", message, facts),
    error: (message, facts) => fail("error", message, facts),
    enabled: log.enabled,
  };
}
