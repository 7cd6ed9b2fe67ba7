/** Beyond it the clock was set, or the machine slept. */
const DRIFT_MAX_MS = 20;

export interface SpanClock {
  /** Milliseconds since 1970, with their fractions. */
  nowMs(): number;
}

/**
 * The time of day to the microsecond, as far as two readings of one clock go: `nowMs` knows whole
 * milliseconds only, so that a query of some microseconds would begin after its request has ended.
 */
export function createSpanClock(nowMs: () => number): SpanClock {
  let originMs = nowMs() - performance.now();
  return {
    nowMs() {
      const elapsedMs = performance.now();
      const now = nowMs();
      if (Math.abs(originMs + elapsedMs - now) > DRIFT_MAX_MS) originMs = now - elapsedMs;
      return originMs + elapsedMs;
    },
  };
}
