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
  {
    message: "signing key is of this machine alone",
    option: "--cache-secret-key-path",
    hint: "give every larder of this database the same key file: clients trust one key",
    applies: (settings) =>
      settings["cache.sign-narinfo"] &&
      settings["cache.secret-key-path"] === undefined &&
      settings["cache.database-url"].kind === "postgres" &&
      settings["cache.storage-s3-bucket"] !== undefined,
  },
];

/** Warns of settings that several machines should not have. */
export function warnOfMembers(settings: Settings, log: Pick<Logger, "warn">): void {
  for (const { applies, message, option, hint } of WARNINGS) {
    if (applies(settings)) log.warn(message, { option, hint });
  }
}
