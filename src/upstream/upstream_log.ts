import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { OUTAGES } from "../telemetry/outages.ts";
import { failureOf, hintFor } from "./failure_hints.ts";
import type { UpstreamReading } from "./upstream.ts";

/** No trusted key verifies the narinfos of an upstream; programs look for this message. */
export const UPSTREAM_NOT_TRUSTED = "upstream is not trusted";

/** The log of each upstream's failures, by its URL. */
export interface UpstreamLog {
  /** Logs one answer. The first failure after a good answer is a warning. */
  reading(upstream: string, reading: UpstreamReading, requestId: string): void;
  /** Logs why an upstream did not answer at the start. */
  unanswered(upstream: string, error: unknown): void;
  /** Logs that an upstream went down, or is up again. */
  changed(upstream: string, isDown: boolean, hint: string | undefined): void;
}

/**
 * Logs the start and the end of an outage. A missing key is logged once for good, since only the
 * operator can mend that.
 */
export function createUpstreamLog(log: Logger): UpstreamLog {
  const outages = new Map<string, ReturnType<typeof outagesOfOne>>();
  const untrusted = new Set<string>();
  const outagesOfOne = () => ({
    failed: new OutageLog(log, OUTAGES.upstreamFailed),
    down: new OutageLog(log, OUTAGES.upstreamDown),
  });
  const outagesOf = (upstream: string) => {
    const known = outages.get(upstream);
    if (known !== undefined) return known;
    const made = outagesOfOne();
    outages.set(upstream, made);
    return made;
  };

  return {
    reading(upstream, reading, requestId) {
      const { failed } = outagesOf(upstream);
      const facts = { upstream, request_id: requestId };
      if (reading.kind === "failed" && reading.reason !== "untrusted") {
        const { kind: _, ...failure } = reading;
        const hint = hintFor(failure);
        return failed.failed("upstream failed", { ...facts, ...failure, hint });
      }
      failed.worked(facts);
      if (reading.kind !== "failed") return;
      const hint = hintFor(reading);
      const level = untrusted.has(upstream) ? "debug" : "warn";
      untrusted.add(upstream);
      log[level](UPSTREAM_NOT_TRUSTED, { ...facts, detail: reading.detail, hint });
    },

    unanswered(upstream, error) {
      const { failed } = outagesOf(upstream);
      const failure = failureOf(error);
      const facts = { upstream, ...failure, hint: hintFor(failure) };
      if (failure.reason === "status") failed.failed("upstream failed", facts);
      else if (failure.reason === "garbage") failed.failed("upstream is no binary cache", facts);
      else failed.failed("upstream does not answer", facts);
    },

    changed(upstream, isDown, hint) {
      const { down } = outagesOf(upstream);
      const facts = { upstream, ...hint === undefined ? {} : { hint } };
      if (isDown) down.failed("upstream is down", facts);
      else down.worked({ upstream });
    },
  };
}
