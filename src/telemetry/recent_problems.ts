import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";
import { begunBy, endedBy, eventEndedBy, kindOf } from "./outages.ts";

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
  "file_size",
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
  readonly level: "warn" | "error";
  readonly message: string;
  readonly facts: Facts;
  /** Times since the start, those of level debug included. */
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

/** An event is present for so long. */
const EVENT_FOR_MS = 15 * 60_000;

/** True until an outage ends, and for the first minutes after an event. */
export function isPresent(problem: Problem, nowMs: number): boolean {
  const { message, lastAtMs, overAtMs } = problem;
  if (overAtMs !== undefined) return false;
  return begunBy(message) !== undefined || nowMs - lastAtMs < EVENT_FOR_MS;
}

/** The newest warnings and errors, each kind listed once for each upstream. */
export class RecentProblems {
  #nowMs: () => number;
  /** Problems in the order of their last occurrence. */
  readonly #problems = new Map<string, Problem>();

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
    return [...this.#problems.values()].reverse();
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
    const begunAtMs = lasting?.begunAtMs ?? lastAtMs;
    // The end of an event is no other event.
    const isEnd = known !== undefined && known.message === eventEndedBy(message);
    const times = {
      count: isEnd ? count : count + 1,
      firstAtMs,
      begunAtMs,
      lastAtMs,
      overAtMs: undefined,
    };
    this.#problems.set(key, { ...gravest(lasting, { level, message, facts: given }), ...times });
    if (this.#problems.size > PROBLEMS_MAX) this.#problems.delete(this.#leastOf(lastAtMs));
  }

  /** The key of the oldest problem, one that is not present if there is any. */
  #leastOf(nowMs: number): string {
    const [oldest] = this.#problems.keys();
    const gone = this.#problems.entries().find(([, problem]) => !isPresent(problem, nowMs));
    return gone?.[0] ?? oldest ?? "";
  }

  #end(message: string, facts: Facts = {}): void {
    const ended = endedBy(message);
    if (ended === undefined) return;
    const key = keyOf(ended, facts);
    const known = this.#problems.get(key);
    if (known === undefined || known.overAtMs !== undefined) return;
    this.#problems.set(key, { ...known, overAtMs: this.#nowMs() });
  }
}

function keyOfMessage(message: string, facts: Facts): string {
  const isPerUpstream = begunBy(message)?.isPerUpstream ?? true;
  return keyOf({ kind: kindOf(message), isPerUpstream }, facts);
}

/** The facts at the end of an outage may name no upstream, where those at its begin did. */
function keyOf(
  { kind, isPerUpstream }: { readonly kind: string; readonly isPerUpstream: boolean },
  { upstream = "" }: Facts,
): string {
  return JSON.stringify([kind, isPerUpstream ? upstream : ""]);
}

/** The shown message of an outage: `next`, unless a graver one stands. */
function gravest(
  lasting: ProblemLine | undefined,
  { level, message, facts }: ProblemLine,
): ProblemLine {
  const gravityOf = (one: string) => begunBy(one)?.gravity ?? 0;
  if (lasting && gravityOf(lasting.message) > gravityOf(message)) return lasting;
  // Of several messages, the one with a hint says the most.
  const hint = lasting?.facts["hint"];
  return { level, message, facts: { ...hint === undefined ? {} : { hint }, ...shownFacts(facts) } };
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
