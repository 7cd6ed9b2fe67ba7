import type { Logger } from "../telemetry/logger.ts";
import type { NarinfoReading } from "./upstream.ts";

/**
 * Says in the log when an upstream starts to fail and when it answers again, each once; and once
 * for good that none of the keys fits it, since only the operator can mend that.
 */
export function logReadings(log: Logger): (upstream: string, reading: NarinfoReading) => void {
  const failing = new Set<string>();
  const untrusted = new Set<string>();

  return (upstream, reading) => {
    if (reading.kind !== "failed") {
      if (failing.delete(upstream)) log.info("upstream answers again", { upstream });
      return;
    }
    const { reason, detail } = reading;
    log.debug("upstream failed", { upstream, reason, detail });
    if (reason === "untrusted") {
      if (untrusted.has(upstream)) return;
      untrusted.add(upstream);
      const remedy = "give its public key with --cache-upstream-public-key";
      log.warn("upstream is not trusted", { upstream, detail, remedy });
    } else if (!failing.has(upstream)) {
      failing.add(upstream);
      log.warn("upstream failed", { upstream, reason, detail });
    }
  };
}
