import type { Timer } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";
import { HealthMonitor } from "./health_monitor.ts";
import {
  ForeignStore,
  NoAnswer,
  type NoAnswerReason,
  type QueuedNarinfoSource,
} from "./upstream.ts";
import {
  FAILURES_MAX,
  looksUp,
  type UpstreamHealth,
  type UpstreamWait,
  waitOf,
} from "./upstream_health.ts";

/** The priority that Nix assumes for a cache that names none. */
const DEFAULT_PRIORITY = 50;

/** The pause before a request for the priority, after a failure or an unknown priority. */
const ASK_AGAIN_MS = 30_000;

export interface HealthWatch {
  /** Called when the upstream goes down, and when it is up again. */
  readonly changed: (isDown: boolean) => void;
  /** Called after each answer, or when none came. `error`: of a request for its priority. */
  readonly noted: (isUp: boolean, error?: unknown) => void;
}

/** An upstream with its health and its priority, beyond single answers. */
export class PooledUpstream implements Disposable {
  readonly source: QueuedNarinfoSource;
  readonly #monitor: HealthMonitor;
  readonly #ended = new AbortController();
  #priority: number | undefined;
  #asking: Promise<unknown> | undefined;
  #askAgainAtMs = -Infinity;
  /** True while its nix-cache-info names another store directory. */
  #isForeign = false;
  #reaching: Promise<boolean> | undefined;
  readonly #watch: HealthWatch;
  #probeTimer: Timer | undefined;

  constructor(source: QueuedNarinfoSource, watch: HealthWatch) {
    this.source = source;
    this.#watch = watch;
    this.#priority = source.priority;
    const probe = async (signal: AbortSignal) => reasonOf(await this.#describe(signal));
    const changed = (isDown: boolean) => {
      watch.changed(isDown);
      // A probe alone may have found it up.
      watch.noted(!isDown);
    };
    this.#monitor = new HealthMonitor({ probe, changed });
  }

  get health(): UpstreamHealth {
    return this.#monitor.health;
  }

  /** True for an upstream that gets no requests of clients. */
  get isDown(): boolean {
    return this.#isForeign || this.health.state === "down";
  }

  /** True for an upstream that displays show as up. */
  get looksUp(): boolean {
    return !this.#isForeign && looksUp(this.health);
  }

  /** How long a request may wait for it. */
  get wait(): UpstreamWait {
    return this.#isForeign ? "none" : waitOf(this.health);
  }

  /** True if the upstream is up, and has capacity for prefetches. */
  get isSpare(): boolean {
    return !this.#isForeign && this.health.state === "up" && !(this.source.isOverloaded ?? false);
  }

  /** The lower is preferred. `undefined` during the first request for it. */
  get priority(): number | undefined {
    return this.#priority;
  }

  /**
   * Requests `priority` if needed. Resolves when it is known, or cannot be known now; `undefined`
   * where that is so already.
   */
  known(): Promise<unknown> | undefined {
    if (this.source.priority !== undefined) return undefined;
    if (clock.nowMs() > this.#askAgainAtMs) this.#ask();
    return this.#priority === undefined ? this.#asking : undefined;
  }

  /**
   * See `NarinfoSource.reach`. Requests share a dial while it is in flight. They share a successful
   * one until the upstream answers, or fails to.
   */
  reached(): Promise<boolean> {
    this.#reaching ??= this.source.reach(this.#ended.signal).then((isReached) => {
      if (!isReached) this.#reaching = undefined;
      return isReached;
    });
    return this.#reaching;
  }

  /** Notes an answer, or the reason why none came. */
  note(reason: NoAnswerReason | undefined): void {
    this.#note(reason, 1);
  }

  /** Probes a down upstream, once for all requests. Resolves within 800 ms. */
  async probed(): Promise<void> {
    await this.#monitor.probed();
  }

  /**
   * Asks before any client does. A timeout makes the upstream down. A refused connection does not:
   * it costs no time, and the upstream may start a moment later. Resolves to the error, if any.
   */
  async probeAtStart(): Promise<unknown> {
    const error = await this.#ask();
    if (this.#ended.signal.aborted) return undefined;
    if (reasonOf(error) === "timeout") this.#note("timeout", FAILURES_MAX);
    return error;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#monitor[Symbol.dispose]();
    this.#probeTimer?.cancel();
  }

  #note(reason: NoAnswerReason | undefined, failures: number, error?: unknown): void {
    this.#reaching = undefined;
    if (this.#ended.signal.aborted) return;
    this.#monitor.note(reason, failures);
    this.#watch.noted(this.looksUp, error);
    // Without requests only this finds out that it is back. A down one has its own probes.
    if (reason !== undefined || this.#isForeign) {
      this.#probeTimer ??= clock.after(ASK_AGAIN_MS, () => {
        this.#probeTimer = undefined;
        if (this.health.state === "failing" || this.#isForeign) this.#ask();
      });
    }
  }

  /** Requests the priority, once at a time. Resolves to the error, if any. */
  #ask(): Promise<unknown> {
    this.#askAgainAtMs = clock.nowMs() + ASK_AGAIN_MS;
    this.#asking ??= this.#describe(this.#ended.signal)
      .then((error) => {
        this.#note(reasonOf(error), 0, error);
        return error;
      })
      .finally(() => this.#asking = undefined);
    return this.#asking;
  }

  async #describe(signal: AbortSignal): Promise<unknown> {
    try {
      const announced = await this.source.describe(signal);
      this.#priority = this.source.priority ?? announced ?? DEFAULT_PRIORITY;
      this.#askAgainAtMs = Infinity;
      this.#isForeign = false;
      return undefined;
    } catch (error) {
      if (error instanceof ForeignStore) this.#isForeign = true;
      this.#priority ??= DEFAULT_PRIORITY;
      return error;
    }
  }
}

/** The reason why no answer came. After any other error the upstream has answered. */
function reasonOf(error: unknown): NoAnswerReason | undefined {
  return error instanceof NoAnswer ? error.reason : undefined;
}
