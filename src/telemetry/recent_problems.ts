import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";

/** Limit of the list; the oldest problem leaves first. */
const PROBLEMS_MAX = 50;

/** Facts may be untrusted: longer ones are cut. */
const FACT_CHARS_MAX = 200;

/**
 * The facts that visitors may see, and their public names. `error`, `detail`, `path` and `stack`
 * may name files of this machine; they stay in the log. So a `hint` must not name any.
 */
const SHOWN_FACTS = {
  upstream: "upstream",
  from: "from",
  nar: "nar",
  reason: "reason",
  route: "route",
  status: "status",
  count: "count",
  expected: "expected",
  found: "found",
  missing: "missing",
  file_size: "fileSize",
  limit_bytes: "limitBytes",
  used_bytes: "usedBytes",
  reserved_bytes: "reservedBytes",
  pinned_bytes: "pinnedBytes",
  busy_bytes: "busyBytes",
  option: "option",
  hint: "remedy",
} as const;

/** A warning or an error, with its public facts. */
export interface Problem {
  readonly level: "warn" | "error";
  readonly message: string;
  readonly facts: Facts;
  /** Times logged since it entered the list. */
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** The newest warnings and errors, each listed once. */
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
      info: log.info,
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
    const facts = shownFacts(given);
    const key = JSON.stringify([level, message, facts]);
    const known = this.#problems.get(key);
    this.#problems.delete(key);
    const lastAtMs = this.#nowMs();
    const { count = 0, firstAtMs = lastAtMs } = known ?? {};
    this.#problems.set(key, { level, message, facts, count: count + 1, firstAtMs, lastAtMs });
    if (this.#problems.size <= PROBLEMS_MAX) return;
    for (const oldest of this.#problems.keys()) return void this.#problems.delete(oldest);
  }
}

function shownFacts(facts: Facts): Facts {
  return Object.fromEntries(
    Object.entries(SHOWN_FACTS).flatMap(([name, shown]) => {
      const value = facts[name];
      if (value === undefined) return [];
      return [[shown, typeof value === "string" ? value.slice(0, FACT_CHARS_MAX) : value]];
    }),
  );
}
