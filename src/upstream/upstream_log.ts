import { messageOf } from "../base/failure.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../telemetry/outage_log.ts";
import { NoAnswer, type UpstreamReading } from "./upstream.ts";

/** No trusted key verifies the narinfos of an upstream; programs look for this message. */
export const UPSTREAM_NOT_TRUSTED = "upstream is not trusted";

const UNTRUSTED: OutageLine = { level: "warn", message: UPSTREAM_NOT_TRUSTED };
const FAILED: OutageLine = { level: "warn", message: "upstream failed" };
const NO_ANSWER: OutageLine = { level: "warn", message: "upstream does not answer" };
const NO_CACHE: OutageLine = { level: "warn", message: "upstream is no binary cache" };

const PROBED = "larder probes it, and uses it as soon as it answers";

/** The log of each upstream's failures, by its URL. */
export interface UpstreamLog {
  /** Logs one answer. The first failure after a good answer is a warning. */
  reading(upstream: string, reading: UpstreamReading, requestId: string): void;
  /** Logs why an upstream did not answer at the start. */
  unanswered(upstream: string, error: unknown): void;
  /** Logs that an upstream went down, or is up again. */
  changed(upstream: string, isDown: boolean): void;
}

/**
 * Logs an outage at its begin and its end. A missing key is logged once for good, since only the
 * operator can mend that.
 */
export function createUpstreamLog(log: Logger): UpstreamLog {
  const outages = new Map<string, { readonly failed: OutageLog; readonly untrusted: OutageLog }>();
  const outagesOf = (upstream: string) => {
    const found = outages.get(upstream);
    if (found !== undefined) return found;
    const failed = new OutageLog(log, "upstream answers again");
    const made = { failed, untrusted: new OutageLog(log) };
    outages.set(upstream, made);
    return made;
  };

  return {
    reading(upstream, reading, requestId) {
      const { failed, untrusted } = outagesOf(upstream);
      const facts = { upstream, request_id: requestId };
      if (reading.kind !== "failed") return failed.worked(facts);
      const { reason, detail } = reading;
      if (reason !== "untrusted") return failed.failed(FAILED, { ...facts, reason, detail });
      const hint = "give its public key with --cache-upstream-public-key";
      untrusted.failed(UNTRUSTED, { ...facts, detail, hint });
    },

    unanswered(upstream, error) {
      const { failed } = outagesOf(upstream);
      const detail = messageOf(error);
      const facts = { upstream, detail, hint: hintFor(detail) };
      if (error instanceof NoAnswer) failed.failed(NO_ANSWER, { ...facts, reason: error.reason });
      else failed.failed(NO_CACHE, facts);
    },

    changed(upstream, isDown) {
      if (isDown) log.warn("upstream is down", { upstream, hint: PROBED });
      else log.info("upstream is up again", { upstream });
    },
  };
}

/** An upstream that was merely down recovers without the operator. */
function hintFor(detail: string): string {
  return /certificate/i.test(detail)
    ? "give the authority of its certificate with --cache-upstream-ca-file"
    : "check --cache-upstream-url and the network; it is used as soon as it answers";
}
