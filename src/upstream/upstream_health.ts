import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import type { LastAnswer, LastError } from "./last_answers.ts";
import type { NoAnswerReason } from "./upstream.ts";

/** Requests in a row without an answer that make an upstream down. */
export const FAILURES_MAX = 3;

/** Pause from the end of a probe to the next one; a refused connection costs nothing. */
const PROBE_PAUSE_MS = 1_000;

/** A probe that timed out doubles the pause, up to this. */
const PROBE_PAUSE_MAX_MS = 5_000;

/** A request waits this long for a probe: with all upstreams off it is a 404 within a second. */
const PROBE_WAIT_MS = 800;

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
type HealthEvent = Readonly<
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

export interface HealthMonitorDeps {
  /** Sends a probe. Resolves to the reason when no answer came; never rejects. */
  readonly probe: (signal: AbortSignal) => Promise<NoAnswerReason | undefined>;
  /** Called when the upstream goes down, and when it is up again. */
  readonly changed: (isDown: boolean) => void;
}

/** The health of one upstream, and the probes while it is down. */
export class HealthMonitor implements Disposable {
  readonly #deps: HealthMonitorDeps;
  #health: UpstreamHealth = { state: "unknown" };
  /** Aborted when the outage is over, or the monitor. */
  #outage = new AbortController();
  /** Resolves when the probe that requests wait for is over. */
  #awaited: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(deps: HealthMonitorDeps) {
    this.#deps = deps;
  }

  get health(): UpstreamHealth {
    return this.#health;
  }

  /** Notes an answer, or why none came. `failures`: the failed requests that it stands for. */
  note(reason: NoAnswerReason | undefined, failures: number): void {
    if (reason === undefined) this.#apply({ type: "answer" });
    else this.#apply({ type: "no-answer", reason, failures, atMs: clock.nowMs() });
  }

  /** Resolves when a probe of a down upstream is over, or took too long; or if none is needed. */
  async probed(): Promise<void> {
    const nowMs = clock.nowMs();
    const probe = probeForRequest(this.#health, nowMs);
    if (probe !== undefined) this.#probe(probe === "awaited");
    if (this.#health.state !== "down" || this.#awaited === undefined) return;
    const leftMs = this.#health.awaitedAtMs + PROBE_WAIT_MS - nowMs;
    if (leftMs > 0) await clock.within(this.#awaited, leftMs);
  }

  [Symbol.dispose](): void {
    this.#outage.abort();
    this.#timer?.cancel();
  }

  #apply(event: HealthEvent): void {
    if (this.#outage.signal.aborted) return;
    // Nearly every answer: nothing changes.
    if (event.type === "answer" && this.#health.state === "up") return;
    const wasDown = this.#health.state === "down";
    this.#health = nextHealth(this.#health, event);
    this.#schedule();
    const isDown = this.#health.state === "down";
    if (isDown === wasDown) return;
    if (wasDown) {
      this.#outage.abort();
      this.#outage = new AbortController();
      this.#awaited = undefined;
    }
    this.#deps.changed(isDown);
  }

  #schedule(): void {
    this.#timer?.cancel();
    const dueAtMs = probeDueAtMs(this.#health);
    if (dueAtMs === undefined) return;
    this.#timer = clock.after(dueAtMs - clock.nowMs(), () => this.#probe(true));
  }

  #probe(isAwaited: boolean): void {
    const { signal } = this.#outage;
    if (signal.aborted) return;
    this.#apply({ type: "probe", isAwaited, atMs: clock.nowMs() });
    const over = this.#deps.probe(signal).then((reason) => {
      // The outage is over: this probe says nothing new.
      if (signal.aborted) return;
      if (reason === undefined) this.#apply({ type: "answer" });
      else this.#apply({ type: "probe-failure", reason, atMs: clock.nowMs() });
    });
    if (isAwaited) this.#awaited = over;
  }
}

/** The causes for which a running upstream is of no use. */
const UNUSABLE = ["untrusted", "status", "garbage"] as const;

/**
 * "down": no narinfo request is answered. "status": it answers with errors. "nars": only NAR
 * requests fail. "garbage": it sends no narinfos.
 */
export type UpstreamState = "up" | "down" | "nars" | typeof UNUSABLE[number];

/**
 * An older error counts no more: clients may send the upstream no request for hours. larder itself
 * asks again for a narinfo before that.
 */
export const ERROR_FOR_MS = 8_000;

/** The evidence of the state of an upstream: its health, and its last answers. */
interface UpstreamEvidence {
  readonly isUp: boolean;
  /** False where the last NAR request got no answer. */
  readonly sendsNars: boolean;
  /** The last answer to a narinfo request, and to a NAR request. */
  readonly last: PlainFacts<LastAnswer> | undefined;
  readonly lastNar: PlainFacts<LastAnswer> | undefined;
  readonly lastError: PlainFacts<Pick<LastError, "reason" | "request" | "atMs">> | undefined;
}

/** Another version of larder may use other words. */
type PlainFacts<Facts> = {
  readonly [Name in keyof Facts]: Facts[Name] extends number ? number : string;
};

/** The state of an upstream, which the log, the page and `larder status` show. */
export function upstreamState(evidence: UpstreamEvidence, nowMs: number): UpstreamState {
  const { isUp, sendsNars, last, lastNar, lastError } = evidence;
  if (!isUp) return "down";
  const isPresent = ({ atMs }: { readonly atMs: number }) => nowMs - atMs < ERROR_FOR_MS;
  // Before the first narinfo request, a probe may have found the cause.
  const probed = lastError?.request === "nar" ? undefined : lastError;
  const latest = last ?? (probed && { result: probed.reason, atMs: probed.atMs });
  // After a timeout or a refused connection, only an answer makes it up.
  const cause = UNUSABLE.find((one) => one === latest?.result);
  // Only a key helps an upstream that is not trusted.
  if (latest && cause && (cause === "untrusted" || isPresent(latest))) return cause;
  if (!sendsNars) return "nars";
  return lastNar?.result === "status" && isPresent(lastNar) ? "nars" : "up";
}
