import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import type { NoAnswerReason } from "./upstream.ts";
import {
  type HealthEvent,
  nextHealth,
  PROBE_WAIT_MS,
  probeDueAtMs,
  probeForRequest,
  type UpstreamHealth,
} from "./upstream_health.ts";

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
