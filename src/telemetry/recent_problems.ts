import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";
import {
  begunBy,
  endedBy,
  eventEndedBy,
  eventOverWith,
  failedPart,
  gravityOf,
  needsOf,
} from "./outages.ts";

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

type ProblemLine = Pick<Problem, "level" | "message" | "facts">;

/** An outage of a problem. */
interface NotedOutage extends ProblemLine {
  /** When it ended, where others of the problem last. */
  readonly overAtMs?: number;
}

/** A problem, and the outages of which it consists, by their rows. */
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
  problem: Pick<Problem, "message" | "lastAtMs" | "overAtMs">,
  nowMs: number,
): boolean {
  const { message, lastAtMs, overAtMs } = problem;
  if (overAtMs !== undefined) return false;
  if (begunBy(message) !== undefined) return true;
  const forMs = needsOf(message).length > 0 ? PART_EVENT_FOR_MS : EVENT_FOR_MS;
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
      // An outage logs its repeats there, and so does a transfer.
      debug: (message, facts) => {
        const level = begunBy(message)?.level ?? this.#levelOfRepeat(message, facts);
        if (level !== undefined) this.#note(level, message, facts);
        log.debug(message, facts);
      },
      info: (message, facts) => {
        this.#end(message, facts);
        log.info(message, facts);
      },
      enabled: log.enabled,
      warn: (message, facts) => {
        this.#note("warn", message, facts);
        log.warn(message, facts);
      },
      error: (message, facts) => {
        this.#note("error", message, facts);
        log.error(message, facts);
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

  /** The level of an event's first line; `undefined` for an event of another NAR, and for none. */
  #levelOfRepeat(message: string, { nar, ...facts }: Facts = {}): Problem["level"] | undefined {
    const known = nar === undefined ? undefined : this.#problems.get(keyOfMessage(message, facts));
    return known?.message === message && known.facts["nar"] === nar ? known.level : undefined;
  }

  #note(level: Problem["level"], message: string, given: Facts = {}): void {
    const key = keyOfMessage(message, given);
    const known = this.#problems.get(key);
    this.#problems.delete(key);
    // After its end, an outage begins anew.
    const lasting = known?.overAtMs === undefined ? known : undefined;
    const lastAtMs = this.#nowMs();
    const { count = 0, firstAtMs = lastAtMs } = known ?? {};
    // The end of an event is no other event.
    const isEnd = known !== undefined && known.message === eventEndedBy(message);
    const begun = begunBy(message);
    // A state that lasts is one time, however often larder tells of it.
    const isCounted = !isEnd && !(begun?.isState === true && lasting !== undefined);
    const hint = lasting?.facts["hint"];
    // Of several messages, the one with a hint says the most.
    const facts = { ...hint === undefined ? {} : { hint }, ...shownFacts(given) };
    const line = { level, message, facts };
    const outages = new Map(lasting?.outages);
    if (begun !== undefined) {
      const present = outages.get(begun.row);
      const isPresent = present !== undefined && present.overAtMs === undefined;
      outages.set(begun.row, gravest([isPresent ? present : line, line]));
    }
    this.#problems.set(key, {
      part: failedPart(message, given),
      ...begun === undefined ? line : lineOf(outages, lastAtMs),
      count: isCounted ? count + 1 : count,
      firstAtMs,
      begunAtMs: lasting?.begunAtMs ?? lastAtMs,
      lastAtMs,
      overAtMs: begun === undefined && this.#isPartOfOutage(message, given) ? lastAtMs : undefined,
      outages,
    });
    if (begun !== undefined && outages.size === 1) this.#takeEvents(failedPart(message, given));
    if (this.#problems.size > PROBLEMS_MAX) this.#problems.delete(this.#leastOf(lastAtMs));
  }

  /** True for an event whose work needs something that is away, or was a moment ago. */
  #isPartOfOutage(event: string, facts: Facts): boolean {
    const needs = needsOf(event, facts);
    const sinceMs = this.#nowMs() - NEAR_MS;
    return this.#problems.values().some(({ part, message, overAtMs = Infinity }) =>
      begunBy(message) !== undefined && needs.includes(part) && overAtMs >= sinceMs
    );
  }

  /** The events of a moment ago are the begin of an outage, if their work needs the part. */
  #takeEvents(part: string): void {
    const nowMs = this.#nowMs();
    for (const [key, problem] of this.#problems) {
      const { message, lastAtMs, overAtMs } = problem;
      const isEvent = begunBy(message) === undefined && needsOf(message).includes(part);
      if (!isEvent || overAtMs !== undefined || lastAtMs < nowMs - NEAR_MS) continue;
      this.#problems.set(key, { ...problem, overAtMs: nowMs });
    }
  }

  /** The key of the oldest problem, one that is not present if there is any. */
  #leastOf(nowMs: number): string {
    const [oldest] = this.#problems.keys();
    const gone = this.#problems.entries().find(([, problem]) => !isPresent(problem, nowMs));
    return gone?.[0] ?? oldest ?? "";
  }

  #end(message: string, { upstream = "" }: Facts = {}): void {
    const nowMs = this.#nowMs();
    const event = this.#problems.entries().find(([, { message: of, overAtMs }]) =>
      of === eventOverWith(message) && overAtMs === undefined
    );
    if (event !== undefined) this.#problems.set(event[0], { ...event[1], overAtMs: nowMs });
    const ended = endedBy(message);
    if (ended === undefined) return;
    for (const [key, problem] of this.#problems) {
      const { facts, outages: before } = problem;
      const outage = before.get(ended.row);
      if (outage === undefined || outage.overAtMs !== undefined) continue;
      // The facts at the end of an outage may name no upstream, where those at its begin did.
      if (ended.isPerUpstream && (facts["upstream"] ?? "") !== upstream) continue;
      const outages = new Map(before).set(ended.row, { ...outage, overAtMs: nowMs });
      const isOver = outages.values().every(({ overAtMs }) => overAtMs !== undefined);
      const shown = { ...problem, ...lineOf(before, nowMs), outages };
      this.#problems.set(key, isOver ? { ...shown, overAtMs: nowMs } : shown);
    }
  }
}

function keyOfMessage(message: string, facts: Facts): string {
  const { isPerUpstream = true } = begunBy(message) ?? {};
  const { upstream = "" } = facts;
  return JSON.stringify([failedPart(message, facts), isPerUpstream ? upstream : ""]);
}

/** The line of a problem whose outages these are. */
function lineOf(outages: ReadonlyMap<string, NotedOutage>, nowMs: number): ProblemLine {
  const shown = [...outages.values()].filter(({ overAtMs = Infinity }) => (
    overAtMs > nowMs - TITLE_FOR_MS
  ));
  const { level, message, facts } = gravest(shown);
  return { level, message, facts };
}

/** The line of a problem: the newest of the gravest. */
function gravest(lines: readonly ProblemLine[]): ProblemLine {
  const [first, ...others] = lines;
  if (first === undefined) throw new Error("Cannot show a problem without a line");
  return others.reduce(
    (shown, line) => gravityOf(line.message) >= gravityOf(shown.message) ? line : shown,
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
