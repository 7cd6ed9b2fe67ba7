/** How long an upstream that was too busy, or slow with a NAR, gets no prefetch. */
const OF_LATE_MS = 60_000;

/** An upstream answers these when it has too much to do. */
export const BUSY_STATUSES: ReadonlySet<number> = new Set([429, 503]);

/** Signs that an upstream has no capacity beyond the requests that clients wait for. */
export interface UpstreamLoad {
  /** Its last answer took over half its timeout, or did not come. */
  readonly isSlow: boolean;
  /** Time of its last NAR that took over half the timeout, unless a quick one followed. */
  readonly slowNarAtMs: number;
  /** Time of its last refusal of a request because it was too busy. */
  readonly busyAtMs: number;
}

export type LoadEvent = Readonly<
  | { type: "answer"; tookMs: number; timeoutMs: number }
  | { type: "no-answer" }
  | { type: "nar"; tookMs: number; timeoutMs: number; atMs: number }
  | { type: "busy"; atMs: number }
>;

export const NO_LOAD: UpstreamLoad = {
  isSlow: false,
  slowNarAtMs: -Infinity,
  busyAtMs: -Infinity,
};

/** The only place where an upstream's load changes. */
export function nextLoad(now: UpstreamLoad, event: LoadEvent): UpstreamLoad {
  switch (event.type) {
    case "answer":
      return { ...now, isSlow: event.tookMs > event.timeoutMs / 2 };
    case "no-answer":
      return { ...now, isSlow: true };
    case "nar":
      return { ...now, slowNarAtMs: event.tookMs > event.timeoutMs / 2 ? event.atMs : -Infinity };
    case "busy":
      return { ...now, busyAtMs: Math.max(now.busyAtMs, event.atMs) };
  }
}

export function isOverloaded(load: UpstreamLoad, nowMs: number): boolean {
  const { isSlow, slowNarAtMs, busyAtMs } = load;
  return isSlow || nowMs - Math.max(slowNarAtMs, busyAtMs) < OF_LATE_MS;
}
