import type { NoAnswerReason } from "./upstream.ts";

/** Requests in a row without an answer that make an upstream down. */
export const FAILURES_MAX = 3;

/** Pause from the end of a probe to the next one; a refused connection costs nothing. */
const PROBE_PAUSE_MS = 1_000;

/** A probe that timed out doubles the pause, up to this. */
const PROBE_PAUSE_MAX_MS = 5_000;

/** A request waits this long for a probe: with all upstreams off it is a 404 within a second. */
export const PROBE_WAIT_MS = 800;

/** Requests wait for a silent upstream less than a quarter of the time. */
const SILENT_PAUSE_MS = 5 * PROBE_WAIT_MS;

/** A probe as old as this may never be answered: a request starts another beside it. */
const OLD_PROBE_MS = 1_000;

/** The health of an upstream. */
export type UpstreamHealth =
  /** No answer since the start. */
  | { readonly state: "unknown" }
  /** The last request got an answer, even an invalid one. */
  | { readonly state: "up" }
  /** `failures`: in a row. `hasAnswered`: it answered before, and did not time out since. */
  | { readonly state: "failing"; readonly failures: number; readonly hasAnswered: boolean }
  /** Probes find out when it is back. */
  | DownHealth;

interface DownHealth {
  readonly state: "down";
  /** Reason of the latest failed request. */
  readonly reason: NoAnswerReason;
  readonly pauseMs: number;
  /** Time of the next probe, while none is in flight. */
  readonly probeDueAtMs: number;
  /** Probes in flight: requests start one beside another that nobody answers. */
  readonly probes: number;
  /** Begin of the youngest probe; before the first one, the time when the upstream went down. */
  readonly probedAtMs: number;
  /** The same for the youngest probe that requests wait for. */
  readonly awaitedAtMs: number;
}

/** The events that change it. */
export type HealthEvent = Readonly<
  | { type: "answer" }
  /** `failures`: the failed requests that it stands for; 0: only its priority was requested. */
  | { type: "no-answer"; reason: NoAnswerReason; failures: number; atMs: number }
  /** A probe begins. */
  | { type: "probe"; isAwaited: boolean; atMs: number }
  /** A probe ends without an answer. */
  | { type: "probe-failure"; reason: NoAnswerReason; atMs: number }
>;

/** The only place where an upstream's health changes. */
export function nextHealth(now: UpstreamHealth, event: HealthEvent): UpstreamHealth {
  if (event.type === "answer") return { state: "up" };
  if (now.state === "down") return nextDown(now, event);
  if (event.type !== "no-answer") return now;
  const { reason, atMs } = event;
  const failures = (now.state === "failing" ? now.failures : 0) + event.failures;
  if (failures < FAILURES_MAX) {
    const hasAnswered = reason === "unreachable" && waitOf(now) === "full";
    return { state: "failing", failures, hasAnswered };
  }
  const pauseMs = PROBE_PAUSE_MS;
  const startTimes = { probedAtMs: atMs, awaitedAtMs: atMs, probeDueAtMs: atMs + pauseMs };
  return { state: "down", reason, pauseMs, probes: 0, ...startTimes };
}

function nextDown(now: DownHealth, event: Exclude<HealthEvent, { type: "answer" }>): DownHealth {
  const { type, atMs } = event;
  if (type === "probe") {
    const awaitedAtMs = event.isAwaited ? atMs : now.awaitedAtMs;
    return { ...now, probes: now.probes + 1, probedAtMs: atMs, awaitedAtMs };
  }
  const { reason } = event;
  // Requests that were in flight when it went down do not delay its probes.
  if (type === "no-answer") return { ...now, reason };
  // Only a probe that times out holds resources.
  const pauseMs = reason === "timeout"
    ? Math.min(PROBE_PAUSE_MAX_MS, 2 * now.pauseMs)
    : PROBE_PAUSE_MS;
  return { ...now, reason, pauseMs, probes: now.probes - 1, probeDueAtMs: atMs + pauseMs };
}

/** Time of the next probe that no request starts; `undefined`: none is due. */
export function probeDueAtMs(health: UpstreamHealth): number | undefined {
  return health.state === "down" && health.probes === 0 ? health.probeDueAtMs : undefined;
}

/**
 * The probe that a request starts when no other upstream can answer it, if any. Requests wait for
 * an "awaited" one. A "beside" one joins an older one that may never get an answer.
 */
export function probeForRequest(
  health: UpstreamHealth,
  nowMs: number,
): "awaited" | "beside" | undefined {
  if (health.state !== "down") return undefined;
  const { reason, probes, probedAtMs, awaitedAtMs } = health;
  const isOld = nowMs >= probedAtMs + OLD_PROBE_MS;
  if (probes > 0 && !isOld) return undefined;
  const isAwaited = reason === "timeout" ? nowMs >= awaitedAtMs + SILENT_PAUSE_MS : probes === 0;
  if (isAwaited) return "awaited";
  return isOld ? "beside" : undefined;
}

/**
 * How long a request may wait for an upstream. "full": for its timeouts. "short": a short time
 * unless a connection stands. "none": not at all, as only a timeout would come.
 */
export type UpstreamWait = "full" | "short" | "none";

export function waitOf(health: UpstreamHealth): UpstreamWait {
  switch (health.state) {
    case "unknown":
      return "short";
    case "up":
      return "full";
    case "failing":
      return health.hasAnswered ? "full" : "short";
    case "down":
      return health.reason === "timeout" ? "none" : "short";
  }
}

/** True for an upstream that displays show as up: no request failed since its last answer. */
export function looksUp({ state }: UpstreamHealth): boolean {
  return state === "unknown" || state === "up";
}
