import { clock } from "../../runtime/current.ts";

/** A larger difference means that the clock was set, or the machine slept. */
const DRIFT_MAX_MS = 20;

export interface SpanClock {
  /** Milliseconds since 1970, with fractions. */
  nowMs(): number;
}

/**
 * A clock in microseconds. `nowMs` has whole milliseconds only, so a short query would begin after
 * its request has ended.
 */
export function createSpanClock(nowMs: () => number): SpanClock {
  let originMs = nowMs() - clock.nowMs();
  return {
    nowMs() {
      const elapsedMs = clock.nowMs();
      const now = nowMs();
      if (Math.abs(originMs + elapsedMs - now) > DRIFT_MAX_MS) originMs = now - elapsedMs;
      return originMs + elapsedMs;
    },
  };
}
