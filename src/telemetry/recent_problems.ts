import type { Facts } from "../base/failure.ts";
import { type EventKind, EVENTS, failedPart, gravityOf, hinted, needsOf } from "./events.ts";
import type { Logger, LogLevel } from "./logger.ts";

/** Limit of the list; the oldest problem leaves first. */
const PROBLEMS_MAX = 50;

/** Facts may be untrusted: larder cuts longer ones. */
const FACT_CHARS_MAX = 200;

/**
 * The facts that visitors may see. `error`, `detail`, `path` and `stack`
 * may name files of this machine; they stay in the log. So a `hint` must not name any.
 */
const SHOWN_FACTS = [
  "upstream",
  "from",
  "nar",
  "name",
  "reason",
  "route",
  "status",
  "count",
  "expected",
  "found",
  "missing",
  "paths",
  "file_size",
  "bytes_per_second",
  "limit_bytes",
  "used_bytes",
  "reserved_bytes",
  "pinned_bytes",
  "busy_bytes",
  "option",
  "hint",
] as const;

/** A kind of warning or error of one subject, with the newest public facts. */
export interface Problem {
  /** What failed. */
  readonly part: string;
  /** The gravest of its events. */
  readonly event: EventKind;
  readonly level: "warn" | "error";
  readonly message: string;
  readonly facts: Facts;
  /** Failures since the start, those of level debug included; of a state, its begins. */
  readonly count: number;
  /** The first of all those times. */
  readonly firstAtMs: number;
  /** Begin of the present outage, or of the last one. */
  readonly begunAtMs: number;
  readonly lastAtMs: number;
  /** `undefined`: it lasts, or it is an event, which has no end. */
  readonly overAtMs: number | undefined;
}

type ProblemLine = Pick<Problem, "event" | "level" | "message" | "facts">;

/** An outage of a problem. */
interface NotedOutage extends ProblemLine {
  /** When it ended, where others of the problem last. */
  readonly overAtMs?: number;
}

/** A problem, and the outages of which it consists, by their ends. */
interface Noted extends Problem {
  readonly outages: ReadonlyMap<string, NotedOutage>;
}

/** So long the end of one outage changes no title: the others usually end, too. */
const TITLE_FOR_MS = 10_000;

/** An event that comes so long before or after an outage is a part of it. */
const NEAR_MS = 2_000;

/** An event is present for so long. */
const EVENT_FOR_MS = 15 * 60_000;

/** The same where a part may have failed that larder probes: if it fails still, its outage says so. */
const PART_EVENT_FOR_MS = 8_000;

/** True until an outage ends, and for the first minutes after an event. */
export function isPresent(
  { event, lastAtMs, overAtMs }: Pick<Problem, "event" | "lastAtMs" | "overAtMs">,
  nowMs: number,
): boolean {
  if (overAtMs !== undefined) return false;
  if (lasts(event)) return true;
  const forMs = needsOf(event).length > 0 ? PART_EVENT_FOR_MS : EVENT_FOR_MS;
  return nowMs - lastAtMs < forMs;
}

/**
 * The newest warnings and errors. The outages of one part are one problem, which ends with the last
 * of them. An event is a problem of its own, unless what its work needs is away.
 */
export class RecentProblems {
  #nowMs: () => number;
  /** Problems in the order of their last occurrence. */
  readonly #problems = new Map<string, Noted>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Takes the clock that all members share: the status page compares its times with these. */
  takeClock(nowMs: () => number): void {
    this.#nowMs = nowMs;
  }

  /** The same logger, whose warnings and errors enter the list whatever its level. */
  watch(log: Logger): Logger {
    return {
      ...log,
      event: (kind, facts, level = EVENTS[kind].level) => {
        const noted = level === "debug" ? this.#levelOfRepeat(kind, facts) : level;
        if (noted === "info") this.#end(kind, facts);
        if (noted === "warn" || noted === "error") this.#note(kind, noted, facts);
        log.event(kind, facts, level);
      },
    };
  }

  /** The newest first. */
  list(): readonly Problem[] {
    const nowMs = this.#nowMs();
    return [...this.#problems.values()].reverse().map(({ outages, ...problem }) => (
      outages.size === 0 || problem.overAtMs !== undefined
        ? problem
        : { ...problem, ...lineOf(outages, nowMs) }
    ));
  }

  /**
   * An outage logs its repeats at debug, and so does a transfer. `undefined` for an event of another
   * NAR, and for any other line.
   */
  #levelOfRepeat(event: EventKind, { nar, ...facts }: Facts = {}): LogLevel | undefined {
    const { endedBy, level } = EVENTS[event];
    if (endedBy !== undefined) return level;
    const known = nar === undefined ? undefined : this.#problems.get(keyOf(event, facts));
    return known?.event === event && known.facts["nar"] === nar ? known.level : undefined;
  }

  #note(event: EventKind, level: Problem["level"], given: Facts = {}): void {
    const { endedBy, isState = false, outcomeOf, words } = EVENTS[event];
    const key = keyOf(event, given);
    const known = this.#problems.get(key);
    this.#problems.delete(key);
    // After its end, an outage begins anew.
    const lasting = known?.overAtMs === undefined ? known : undefined;
    const lastAtMs = this.#nowMs();
    const { count = 0, firstAtMs = lastAtMs } = known ?? {};
    // The outcome of an event is no other event.
    const isOutcome = known !== undefined && known.event === outcomeOf;
    // A state that lasts is one time, however often larder tells of it.
    const isCounted = !isOutcome && !(isState && lasting !== undefined);
    const hint = lasting?.facts["hint"];
    // Of several events, the one with a hint says the most.
    const facts = { ...hint === undefined ? {} : { hint }, ...shownFacts(hinted(event, given)) };
    const line = { event, level, message: words, facts };
    const outages = new Map(lasting?.outages);
    if (endedBy !== undefined) {
      const present = outages.get(endedBy);
      const isPresent = present !== undefined && present.overAtMs === undefined;
      outages.set(endedBy, gravest([isPresent ? present : line, line]));
    }
    const part = failedPart(event, given);
    this.#problems.set(key, {
      part,
      ...endedBy === undefined ? line : lineOf(outages, lastAtMs),
      count: isCounted ? count + 1 : count,
      firstAtMs,
      begunAtMs: lasting?.begunAtMs ?? lastAtMs,
      lastAtMs,
      overAtMs: endedBy === undefined && this.#isPartOfOutage(event, given) ? lastAtMs : undefined,
      outages,
    });
    if (endedBy !== undefined && outages.size === 1) this.#takeEvents(part);
    if (this.#problems.size > PROBLEMS_MAX) this.#problems.delete(this.#leastOf(lastAtMs));
  }

  /** True for an event whose work needs something that is away, or was a moment ago. */
  #isPartOfOutage(kind: EventKind, facts: Facts): boolean {
    const needs = needsOf(kind, facts);
    const sinceMs = this.#nowMs() - NEAR_MS;
    return this.#problems.values().some(({ part, event, overAtMs = Infinity }) =>
      lasts(event) && needs.includes(part) && overAtMs >= sinceMs
    );
  }

  /** The events of a moment ago are the begin of an outage, if their work needs the part. */
  #takeEvents(part: string): void {
    const nowMs = this.#nowMs();
    for (const [key, problem] of this.#problems) {
      const { event, lastAtMs, overAtMs } = problem;
      const isOfPart = !lasts(event) && needsOf(event).includes(part);
      if (!isOfPart || overAtMs !== undefined || lastAtMs < nowMs - NEAR_MS) continue;
      this.#problems.set(key, { ...problem, overAtMs: nowMs });
    }
  }

  /** The key of the oldest problem, one that is not present if there is any. */
  #leastOf(nowMs: number): string {
    const [oldest] = this.#problems.keys();
    const gone = this.#problems.entries().find(([, problem]) => !isPresent(problem, nowMs));
    return gone?.[0] ?? oldest ?? "";
  }

  #end(end: EventKind, { upstream = "" }: Facts = {}): void {
    const nowMs = this.#nowMs();
    for (const [key, problem] of this.#problems) {
      const { facts, outages: before } = problem;
      const outage = before.get(end);
      if (outage === undefined || outage.overAtMs !== undefined) continue;
      const { isPerUpstream = false } = EVENTS[outage.event];
      // The facts at the end of an outage may name no upstream, where those at its begin did.
      if (isPerUpstream && (facts["upstream"] ?? "") !== upstream) continue;
      const outages = new Map(before).set(end, { ...outage, overAtMs: nowMs });
      const isOver = outages.values().every(({ overAtMs }) => overAtMs !== undefined);
      const shown = { ...problem, ...lineOf(before, nowMs), outages };
      this.#problems.set(key, isOver ? { ...shown, overAtMs: nowMs } : shown);
    }
  }
}

/** True for an outage, which lasts until its end. */
export function lasts(event: EventKind): boolean {
  const { endedBy, fades = false } = EVENTS[event];
  return endedBy !== undefined && !fades;
}

function keyOf(event: EventKind, facts: Facts): string {
  const { endedBy, isPerUpstream = endedBy === undefined } = EVENTS[event];
  const { upstream = "" } = facts;
  return JSON.stringify([failedPart(event, facts), isPerUpstream ? upstream : ""]);
}

/** The line of a problem whose outages these are. */
function lineOf(outages: ReadonlyMap<string, NotedOutage>, nowMs: number): ProblemLine {
  const shown = [...outages.values()].filter(({ overAtMs = Infinity }) => (
    overAtMs > nowMs - TITLE_FOR_MS
  ));
  const { event, level, message, facts } = gravest(shown);
  return { event, level, message, facts };
}

/** The line of a problem: the newest of the gravest. */
function gravest(lines: readonly ProblemLine[]): ProblemLine {
  const [first, ...others] = lines;
  if (first === undefined) throw new Error("Cannot show a problem without a line");
  return others.reduce(
    (shown, line) => gravityOf(line.event) >= gravityOf(shown.event) ? line : shown,
    first,
  );
}

function shownFacts(facts: Facts): Facts {
  return Object.fromEntries(
    SHOWN_FACTS.flatMap((name) => {
      const value = facts[name];
      if (value === undefined) return [];
      return [[name, typeof value === "string" ? value.slice(0, FACT_CHARS_MAX) : value]];
    }),
  );
}
