import { messageOf } from "../base/failure.ts";
import type { Logger } from "../telemetry/logger.ts";
import { NoAnswer, type UpstreamReading } from "./upstream.ts";

/** The warning about an upstream whose narinfos none of the keys verifies; programs look for it. */
export const UPSTREAM_NOT_TRUSTED = "upstream is not trusted";

/** How an upstream does, for the log. */
export interface UpstreamLog {
  /** One answer. The first failure after a good answer is a warning, the rest is for debugging. */
  reading(upstream: string, reading: UpstreamReading, requestId: string): void;
  /** It did not answer when it was looked at at the start. */
  unanswered(upstream: string, error: unknown): void;
  /** It went down, or is up again. */
  changed(upstream: string, isDown: boolean): void;
}

/**
 * Says when an upstream starts to fail and when it answers again, each once; and once for good
 * that none of the keys fits it, since only the operator can mend that.
 */
export function createUpstreamLog(log: Logger): UpstreamLog {
  const failing = new Set<string>();
  const untrusted = new Set<string>();
  const unanswered = new Set<string>();

  return {
    reading(upstream, reading, requestId) {
      const facts = { upstream, request_id: requestId };
      if (reading.kind !== "failed") {
        const wasSilent = unanswered.delete(upstream);
        if (failing.delete(upstream) || wasSilent) log.info("upstream answers again", facts);
        return;
      }
      const { reason, detail } = reading;
      if (reason === "untrusted" && !untrusted.has(upstream)) {
        untrusted.add(upstream);
        const remedy = "give its public key with --cache-upstream-public-key";
        log.warn(UPSTREAM_NOT_TRUSTED, { ...facts, detail, remedy });
      } else if (reason !== "untrusted" && !failing.has(upstream)) {
        failing.add(upstream);
        log.warn("upstream failed", { ...facts, reason, detail });
      } else log.debug("upstream failed", { ...facts, reason, detail });
    },

    unanswered(upstream, error) {
      unanswered.add(upstream);
      const detail = messageOf(error);
      const facts = { upstream, detail, remedy: remedyFor(detail) };
      if (error instanceof NoAnswer) {
        log.warn("upstream does not answer", { ...facts, reason: error.reason });
      } else log.warn("upstream is no binary cache", facts);
    },

    changed(upstream, isDown) {
      if (isDown) log.warn("upstream is down", { upstream, consequence: "it is only probed" });
      else log.info("upstream is up again", { upstream });
    },
  };
}

/** What the operator can do; an upstream that is merely away is used again without it. */
function remedyFor(detail: string): string {
  return /certificate/i.test(detail)
    ? "give the authority of its certificate with --cache-upstream-ca-file"
    : "check --cache-upstream-url and the network; it is used as soon as it answers";
}
