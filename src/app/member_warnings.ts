import type { Settings } from "../config/options.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A setting that works, but not for several machines. */
interface MemberWarning {
  readonly message: string;
  readonly option: string;
  readonly hint: string;
  applies(settings: Settings): boolean;
}

const WARNINGS: readonly MemberWarning[] = [
  {
    message: "locks of one machine are in redis",
    option: "--cache-redis-addrs",
    hint: "machines cannot share an SQLite file: set --cache-database-url to PostgreSQL, or " +
      "leave the option out",
    applies: (settings) =>
      settings["cache.redis-addrs"].length > 0 &&
      settings["cache.database-url"].kind === "sqlite",
  },
];

/** Warns of settings that several machines should not have. */
export function warnOfMembers(settings: Settings, log: Pick<Logger, "warn">): void {
  for (const { applies, message, option, hint } of WARNINGS) {
    if (applies(settings)) log.warn(message, { option, hint });
  }
}
