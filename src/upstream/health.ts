import type { Silence } from "./upstream.ts";

/** So many answers in a row that did not come make an upstream down. */
export const SILENCES_MAX = 3;

/** A down upstream is probed after this time again. */
export const PROBE_PAUSE_MS = 1_000;

/** A probe that ran into a timeout doubles the pause, up to this. */
const PROBE_PAUSE_MAX_MS = 5_000;

/** Whether an upstream is worth asking. */
export type Health =
  /** `silences`: answers in a row that did not come. */
  | { readonly state: "up"; readonly silences: number }
  /** `pauseMs`: from the end of a probe to the next one. */
  | { readonly state: "down"; readonly pauseMs: number };

/** One answer of an upstream, or the lack of it. */
export interface Heard {
  /** `undefined`: it answered. */
  readonly silence: Silence | undefined;
  /** What a down one is asked in the background, to see whether it is back. */
  readonly isProbe: boolean;
}

/** Nothing is known against it. */
export const HEALTHY: Health = { state: "up", silences: 0 };

/** The only place where an upstream's health changes. */
export function next(now: Health, { silence, isProbe }: Heard): Health {
  if (silence === undefined) return HEALTHY;
  if (now.state === "up") {
    const silences = now.silences + 1;
    return silences < SILENCES_MAX
      ? { state: "up", silences }
      : { state: "down", pauseMs: PROBE_PAUSE_MS };
  }
  // Requests that were under way when it went down say nothing new.
  if (!isProbe) return now;
  // A refused connection costs nobody anything. Only a timeout holds resources.
  const pauseMs = silence === "unreachable" ? PROBE_PAUSE_MS : 2 * now.pauseMs;
  return { state: "down", pauseMs: Math.min(PROBE_PAUSE_MAX_MS, pauseMs) };
}
