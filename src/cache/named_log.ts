import type { Facts } from "../base/failure.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { StorePathNames } from "./store_path_names.ts";

/** The same log. Its lines about a NAR file also have the `name` of its store path, if known. */
export function namedLog(log: Logger, names: Pick<StorePathNames, "known">): Logger {
  const named = (facts: Facts | undefined): Facts | undefined => {
    if (facts?.["nar"] === undefined || facts["name"] !== undefined) return facts;
    const name = names.known(String(facts["nar"]));
    return name === undefined ? facts : { ...facts, name };
  };
  return {
    debug: (msg, facts) => log.debug(msg, named(facts)),
    info: (msg, facts) => log.info(msg, named(facts)),
    warn: (msg, facts) => log.warn(msg, named(facts)),
    error: (msg, facts) => log.error(msg, named(facts)),
    enabled: (level) => log.enabled(level),
  };
}
