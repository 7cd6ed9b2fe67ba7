import pino from "pino";
import type { Facts } from "../base/failure.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = typeof LOG_LEVELS[number];

/** One structured log line a call: `level`, `ts` and `msg` first, then the facts. */
export interface Logger {
  debug(msg: string, facts?: Facts): void;
  info(msg: string, facts?: Facts): void;
  warn(msg: string, facts?: Facts): void;
  error(msg: string, facts?: Facts): void;
  /** False when lines of that level go nowhere: skip the work of collecting their facts. */
  enabled(level: LogLevel): boolean;
}

/** Where finished lines go; `write` must return at once. */
export interface LineSink {
  write(line: string): void;
}

/** Lines as the specification's §6.3 wants them: JSON, level as a word, time as ISO 8601 UTC. */
export function createLogger(level: LogLevel, sink: LineSink): Logger {
  const log = pino({
    level,
    base: null,
    formatters: { level: (label) => ({ level: label }) },
    timestamp: () => `,"ts":"${new Date().toISOString()}"`,
  }, sink);
  // pino writes its own message behind the facts; as the first fact it stands before them.
  return {
    debug: (msg, facts) => log.debug({ msg, ...facts }),
    info: (msg, facts) => log.info({ msg, ...facts }),
    warn: (msg, facts) => log.warn({ msg, ...facts }),
    error: (msg, facts) => log.error({ msg, ...facts }),
    enabled: (asked) => log.isLevelEnabled(asked),
  };
}
