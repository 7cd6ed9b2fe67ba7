import type { Facts } from "../base/failure.ts";
import { type EventKind, EVENTS, needsOf } from "./events.ts";
import type { Logger, LogLevel } from "./logger.ts";

/** Failures of the outage may come so long after its end. */
const LATE_MS = 1_000;

/** Outages of a part itself, which explain those of all work that needs it. */
const OF_PARTS = Object.values(EVENTS).filter(({ explains }) => explains);

export interface QuietParts {
  readonly log: Logger;
  /** Logs failures that the line of a part that is away explains already. */
  readonly quiet: Pick<Logger, "event">;
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
  /** The outages that need a part, by their ends: true for those that the log shows. */
  const shown = new Map<string, boolean>();
  const isAway = (part: string) => nowMs() < (awayUntilMs.get(part) ?? -Infinity);
  const fail = (kind: EventKind, facts: Facts | undefined, level: LogLevel) => {
    const { explains, part = "", endedBy } = EVENTS[kind];
    if (explains) awayUntilMs.set(part, Infinity);
    const needs = needsOf(kind);
    const isQuiet = needs.some(isAway);
    if (endedBy !== undefined && needs.length > 0 && !(isQuiet && shown.has(endedBy))) {
      shown.set(endedBy, !isQuiet);
    }
    if (isQuiet) quiet.event(kind, facts, "debug");
    else log.event(kind, facts, level);
  };
  const end = (kind: EventKind, facts: Facts | undefined) => {
    const { part = "" } = OF_PARTS.find(({ endedBy }) => endedBy === kind) ?? {};
    if (awayUntilMs.has(part)) awayUntilMs.set(part, nowMs() + LATE_MS);
    if (shown.get(kind) === false) return quiet.event(kind, facts, "debug");
    shown.delete(kind);
    log.event(kind, facts, "info");
  };
  return {
    ...log,
    event(kind, facts, level = EVENTS[kind].level) {
      const { endedBy = "", level: own } = EVENTS[kind];
      if (level === "info") return end(kind, facts);
      // An outage logs its repeats at debug, although its first failure was quiet.
      const isQuietRepeat = level === "debug" && shown.get(endedBy) === false;
      if (level === "debug" && !isQuietRepeat) return log.event(kind, facts, level);
      fail(kind, facts, isQuietRepeat ? own : level);
    },
  };
}
