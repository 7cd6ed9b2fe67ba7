/** Divisor of the response header timeout, after which the next upstream gets the request too. */
const HEDGE_PART = 3;

/** The timeouts of one upstream. */
interface UpstreamTimeouts {
  readonly headerTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** Timeouts of NAR requests. */
export function narTimeouts(upstreams: readonly UpstreamTimeouts[]) {
  const idleTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.idleTimeoutMs));
  const headerTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.headerTimeoutMs));
  return { idleTimeoutMs, hedgeAfterMs: headerTimeoutMs / HEDGE_PART };
}
