import { formatSeconds } from "../../base/format_units.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** `Date` counts whole seconds, and an answer takes its time. */
const CLOCK_ERROR_OK_MS = 5_000;

/** TLS certificates and tokens of upstreams have about as much tolerance. */
const WARNING_MS = 5 * 60_000;

/** A file system may round times. */
const FUTURE_MS = 60_000;

export interface ClockFacts {
  readonly nowMs: number;
  /** How far this clock is ahead of each upstream's. */
  readonly clockLeadMs: readonly number[];
  /** How far it is ahead of the database's server; `undefined` without one. */
  readonly leadOverDatabaseMs?: number | undefined;
  /** The newest time that the storage has; `undefined` without a storage. */
  readonly newestMs: number | undefined;
}

/** Compares the clock with those of upstreams and the database, and with the stored times. */
export function checkClock(facts: ClockFacts): readonly Finding[] {
  const { nowMs, clockLeadMs, leadOverDatabaseMs = 0, newestMs } = facts;
  const { ok, warning, failed, notChecked } = findingsOn("clock");
  const advice = "set the clock by NTP, such as timedatectl set-ntp true";
  const findings: Finding[] = [];
  // One upstream may be wrong: the one that agrees best counts.
  const leastMs = clockLeadMs.toSorted((one, other) => Math.abs(one) - Math.abs(other))[0];
  if (leastMs === undefined) {
    findings.push(
      notChecked("no upstream sent the time", "compare it with NTP, such as timedatectl"),
    );
  } else {
    const amountMs = Math.abs(leastMs);
    const fact = `${differenceOf(leastMs)} the upstreams`;
    if (amountMs <= CLOCK_ERROR_OK_MS) findings.push(ok("agrees with the upstreams"));
    else findings.push(amountMs <= WARNING_MS ? warning(fact, advice) : failed(fact, advice));
  }
  if (Math.abs(leadOverDatabaseMs) > CLOCK_ERROR_OK_MS) {
    findings.push(warning(`${differenceOf(leadOverDatabaseMs)} the database's server`, advice));
  }
  if (newestMs !== undefined && newestMs > nowMs + FUTURE_MS) {
    const fact = `the storage has times ${
      formatSeconds((newestMs - nowMs) / 1_000)
    } ahead of the clock`;
    findings.push(warning(fact, `${advice}; until then eviction takes the wrong files`));
  }
  return findings;
}

function differenceOf(clockLeadMs: number): string {
  return `${formatSeconds(Math.abs(clockLeadMs) / 1_000)} ${
    clockLeadMs > 0 ? "ahead of" : "behind"
  }`;
}
