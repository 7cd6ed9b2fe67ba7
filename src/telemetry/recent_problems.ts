import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";
import { endedKindOf, kindOf } from "./problem_kinds.ts";

/** Limit of the list; the oldest problem leaves first. */
const PROBLEMS_MAX = 50;

/** Facts may be untrusted: longer ones are cut. */
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
  /** Times logged since it began. */
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** `undefined`: it lasts, or its kind has no end. */
  readonly overAtMs: number | undefined;
}

/** The newest warnings and errors, each kind listed once for each upstream. */
export class RecentProblems {
  readonly #nowMs: () => number;
  /** In the order of their last occurrence. */
  readonly #problems = new Map<string, Problem>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The same logger, whose warnings and errors enter the list whatever its level. */
  watch(log: Logger): Logger {
    return {
      debug: log.debug,
      info: (message, facts) => {
        const ended = endedKindOf(message);
        if (ended !== undefined) this.#end(ended, facts);
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

  #note(level: Problem["level"], message: string, given: Facts = {}): void {
    const key = keyOf(kindOf(message), given);
    const known = this.#problems.get(key);
    this.#problems.delete(key);
    // After its end, a problem begins anew.
    const lasting = known?.overAtMs === undefined ? known : undefined;
    const lastAtMs = this.#nowMs();
    const { count = 0, firstAtMs = lastAtMs } = lasting ?? {};
    // Of several messages, the one that says what to do says the most.
    const hint = lasting?.facts["hint"];
    const facts = { ...hint === undefined ? {} : { hint }, ...shownFacts(given) };
    const times = { count: count + 1, firstAtMs, lastAtMs, overAtMs: undefined };
    this.#problems.set(key, { level, message, facts, ...times });
    if (this.#problems.size <= PROBLEMS_MAX) return;
    for (const oldest of this.#problems.keys()) return void this.#problems.delete(oldest);
  }

  #end(kind: string, facts: Facts = {}): void {
    const key = keyOf(kind, facts);
    const known = this.#problems.get(key);
    if (known === undefined || known.overAtMs !== undefined) return;
    this.#problems.set(key, { ...known, overAtMs: this.#nowMs() });
  }
}

function keyOf(kind: string, { upstream = "" }: Facts): string {
  return JSON.stringify([kind, upstream]);
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
