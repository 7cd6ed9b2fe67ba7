import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";
import { begunBy, endedBy, needsOf, OUTAGES } from "./outages.ts";

/** Failures of the outage may come so long after its end. */
const LATE_MS = 1_000;

/** Outages of a part itself, which explain those of all work that needs it. */
const OF_PARTS = [OUTAGES.database, OUTAGES.narStore];

export interface QuietParts {
  readonly log: Logger;
  /** Logs failures that the line of a part that is away explains already. */
  readonly quiet: Pick<Logger, "debug">;
  readonly nowMs: () => number;
}

/**
 * The same logger, which logs failures at debug while the database or the storage is away, if their
 * work needs it: the outage of that part says so once for all. A failure that lasts longer is logged
 * afterwards.
 */
export function quietWhileAway({ log, quiet, nowMs }: QuietParts): Logger {
  /** Until when failures may belong to the outage of a part. */
  const awayUntilMs = new Map<string, number>();
  /** The outages that need a part: true for those that the log shows. */
  const shown = new Map<string, boolean>();
  const isAway = (part: string) => nowMs() < (awayUntilMs.get(part) ?? -Infinity);
  const fail = (level: "warn" | "error", message: string, facts?: Facts) => {
    const begun = begunBy(message);
    if (begun && OF_PARTS.some(({ begins }) => message in begins)) {
      awayUntilMs.set(begun.kind, Infinity);
    }
    const needs = needsOf(message);
    const isQuiet = needs.some(isAway);
    if (begun && needs.length > 0 && !(isQuiet && shown.has(begun.row))) {
      shown.set(begun.row, !isQuiet);
    }
    if (isQuiet) quiet.debug(message, facts);
    else log[level](message, facts);
  };
  return {
    debug(message, facts) {
      const begun = begunBy(message);
      // An outage logs its repeats at debug, although its first failure was quiet.
      if (begun && shown.get(begun.row) === false) fail(begun.level, message, facts);
      else log.debug(message, facts);
    },
    info(message, facts) {
      const ended = endedBy(message);
      if (ended && awayUntilMs.has(ended.kind) && OF_PARTS.some(({ over }) => over === message)) {
        awayUntilMs.set(ended.kind, nowMs() + LATE_MS);
      }
      if (ended && shown.get(ended.row) === false) return quiet.debug(message, facts);
      if (ended) shown.delete(ended.row);
      log.info(message, facts);
    },
    warn: (message, facts) => fail("warn", message, facts),
    error: (message, facts) => fail("error", message, facts),
    enabled: log.enabled,
  };
}
