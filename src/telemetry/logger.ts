import type { Facts } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import { type EventKind, EVENTS, hinted } from "./events.ts";
import type { TraceIds, Tracer } from "./tracer.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = typeof LOG_LEVELS[number];

/** Logs one structured line a call: `level`, `ts` and `msg` first, then the facts. */
export interface Logger {
  /** A sentence for people, which nothing else reads. */
  debug(msg: string, facts?: Facts): void;
  info(msg: string, facts?: Facts): void;
  /** An event of the table, in its words. `level` differs from the table's for a repeat. */
  event(kind: EventKind, facts?: Facts, level?: LogLevel): void;
  /** The levels whose lines are written. Collect no facts for others. */
  readonly levels: ReadonlySet<LogLevel>;
}

/** The output of finished lines; `write` must return at once. */
export interface LineSink {
  write(line: string): void;
}

/** Receives a copy of each line, for a collector. */
export type LogCopy = (
  level: LogLevel,
  msg: string,
  facts: Facts | undefined,
  ids: TraceIds | undefined,
) => void;

export interface Tracing {
  readonly tracer: Pick<Tracer, "ids">;
  readonly copyLog: LogCopy;
}

/** A logger in the specification's format (§6.3): JSON, level as a word, time as ISO 8601 UTC. */
export function createLogger(level: LogLevel, sink: LineSink, tracing?: Tracing): Logger {
  const clock = new IsoClock();
  const levels = new Set(LOG_LEVELS.slice(LOG_LEVELS.indexOf(level)));
  const messages = new EncodedMessages();
  const put = (at: LogLevel, msg: string, facts: Facts) => {
    const own = JSON.stringify(inWholes(facts));
    const rest = own === "{}" ? "}" : `,${own.slice(1)}`;
    // A level and a time need no escapes.
    sink.write(`{"level":"${at}","ts":"${clock.now()}",${messages.of(msg)}${rest}\n`);
  };
  const plain = (at: LogLevel) => (msg: string, facts: Facts = {}) => put(at, msg, facts);
  const traced = ({ tracer, copyLog }: Tracing, at: LogLevel) => (msg: string, facts?: Facts) => {
    const ids = tracer.ids();
    put(at, msg, { ...facts, ...ids });
    copyLog(at, msg, facts && inWholes(facts), ids);
  };
  const write = (at: LogLevel) => {
    if (!levels.has(at)) return () => undefined;
    return tracing === undefined ? plain(at) : traced(tracing, at);
  };
  const writes = {
    ...{ debug: write("debug"), info: write("info") },
    ...{ warn: write("warn"), error: write("error") },
  };
  return {
    debug: writes.debug,
    info: writes.info,
    event: (kind, facts, level = EVENTS[kind].level) =>
      writes[level](EVENTS[kind].words, hinted(kind, facts)),
    levels,
  };
}

/** Figures are counts, bytes and milliseconds, of which parts say nothing. Most are whole already. */
function inWholes(facts: Facts): Facts {
  for (const key in facts) {
    if (typeof facts[key] === "number" && !Number.isInteger(facts[key])) return rounded(facts);
  }
  return facts;
}

function rounded(facts: Facts): Facts {
  const entries = Object.entries(facts).map(([key, fact]) => (
    [key, typeof fact === "number" ? Math.round(fact) : fact] as const
  ));
  return Object.fromEntries(entries);
}

/** More than the sources have. */
const MESSAGES_MAX = 1_000;

/** Messages as JSON. Each is a constant, so it is encoded once. */
class EncodedMessages {
  readonly #known = new Map<string, string>();

  of(msg: string): string {
    const known = this.#known.get(msg);
    if (known !== undefined) return known;
    const encoded = `"msg":${JSON.stringify(msg)}`;
    if (this.#known.size < MESSAGES_MAX) this.#known.set(msg, encoded);
    return encoded;
  }
}

/** The time as ISO 8601 UTC. The lines of one millisecond share the text, which costs most. */
class IsoClock {
  #atMs = NaN;
  #text = "";

  now(): string {
    const nowMs = clock.wallMs();
    if (nowMs !== this.#atMs) {
      this.#atMs = nowMs;
      this.#text = new Date(nowMs).toISOString();
    }
    return this.#text;
  }
}

/** A logger without output, for commands that report their findings themselves. */
export const SILENT = createLogger("error", { write: () => undefined });
