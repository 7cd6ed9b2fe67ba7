import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  ExponentialBackoff,
  handleWhen,
} from "cockatiel";
import { Failure } from "../base/failure.ts";
import { Hearing } from "./hearing.ts";
import {
  isNoAnswer,
  NoAnswer,
  type PooledSource,
  type QueuedReading,
  type Silence,
} from "./upstream.ts";

/** What Nix takes for the priority of a cache that names none. */
const DEFAULT_PRIORITY = 50;

/** So many answers in a row that did not come make an upstream down. */
const FAILURES_MAX = 3;

/** A down upstream is probed after 1 s, 2 s, 4 s and so on, at most this far apart. */
const PROBE_PAUSE_MAX_MS = 30_000;
const PROBE_PAUSE_FIRST_MS = 1_000;

/** An upstream that would not say its priority is asked again after this. */
const ASK_AGAIN_MS = 30_000;

/** We did not wait for the answer: says neither good nor bad of the upstream. */
class NotAwaited extends Error {}

/**
 * What is known of an upstream beyond single answers: whether it is down, and its priority. A
 * down one is asked nothing but, in the background, for its nix-cache-info.
 */
export class Standing implements Disposable {
  readonly source: PooledSource;
  readonly #breaker = circuitBreaker(handleWhen((error) => !(error instanceof NotAwaited)), {
    breaker: new ConsecutiveBreaker(FAILURES_MAX),
    halfOpenAfter: new ExponentialBackoff({
      initialDelay: PROBE_PAUSE_FIRST_MS,
      maxDelay: PROBE_PAUSE_MAX_MS,
    }),
  });
  #probing: number | undefined;
  readonly #ended = new AbortController();
  #priority: number | undefined;
  #asking: Promise<unknown> | undefined;
  #askAgainAtMs = -Infinity;
  readonly #hearing = new Hearing();
  #reaching: Promise<boolean> | undefined;
  #lookAgain: number | undefined;

  constructor(source: PooledSource, changed: (isDown: boolean) => void) {
    this.source = source;
    this.#priority = source.priority;
    this.#breaker.onBreak(() => {
      // A probe that fails breaks the circuit again: nothing has changed then.
      if (this.#probing !== undefined || this.#ended.signal.aborted) return;
      this.#probing = setInterval(() => this.#probe(), PROBE_PAUSE_FIRST_MS);
      changed(true);
    });
    this.#breaker.onReset(() => {
      this.#stopProbing();
      changed(false);
    });
  }

  /** For people: false also when the last thing that was asked of it did not come. */
  get isUp(): boolean {
    return !this.isDown && !this.#hearing.isSilent;
  }

  get isDown(): boolean {
    return this.#breaker.state !== CircuitState.Closed;
  }

  /** True when it is down and whoever asks it all the same waits for a timeout. */
  get isSilent(): boolean {
    return this.isDown && this.#hearing.lastSilence === "timeout";
  }

  /** True where it is known to answer: see `Hearing`. */
  get isProven(): boolean {
    return this.#hearing.isProven;
  }

  /** The lower is preferred. `undefined` while it is asked for the first time. */
  get priority(): number | undefined {
    return this.#priority;
  }

  /** Resolves when `priority` is known, or known not to be had for now. Asks if need be. */
  async known(): Promise<void> {
    if (this.source.priority !== undefined) return;
    if (this.#priority === undefined || performance.now() > this.#askAgainAtMs) {
      this.#asking ??= this.#ask().finally(() => this.#asking = undefined);
    }
    if (this.#priority === undefined) await this.#asking;
  }

  /**
   * See `NarinfoSource.reach`. One dial for all who ask while it is under way, and once it
   * succeeded, until something is heard of the upstream.
   */
  reached(): Promise<boolean> {
    this.#reaching ??= this.source.reach(this.#ended.signal).then((isReached) => {
      if (!isReached) this.#reaching = undefined;
      return isReached;
    });
    return this.#reaching;
  }

  /**
   * One answer of the upstream, counted; only what did not come at all speaks of its health, and
   * nothing does once `ended` says that we wait no longer.
   */
  async count(answer: Promise<QueuedReading>, ended: AbortSignal): Promise<QueuedReading> {
    let reading: QueuedReading | undefined;
    try {
      await this.#breaker.execute(async () => {
        reading = await answer;
        const { kind } = reading;
        if (ended.aborted || kind === "late") throw new NotAwaited();
        if (kind !== "failed" || !isNoAnswer(reading.reason)) return this.#heard(undefined);
        this.#heard(reading.reason);
        throw new NoAnswer(reading.reason, reading.detail);
      });
    } catch {
      // Counted; or another answer has just broken the circuit, and this one need not be.
    }
    return reading ?? await answer;
  }

  /** Counts what else was asked of the upstream: what came of it, if anything. */
  async note(silence: Silence | undefined): Promise<void> {
    try {
      await this.#breaker.execute(() => {
        this.#heard(silence);
        if (silence === undefined) return;
        throw new NoAnswer(silence, "Cannot reach upstream");
      });
    } catch {
      // Counted, or the circuit is open as it is.
    }
  }

  /**
   * Looks at it before anybody asks. One that says nothing is down from then on; one that cannot
   * be reached costs nobody any time, and may be there the next moment.
   */
  async lookAtStart(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => this.#asking = undefined);
    const error = await this.#asking;
    if (!(error instanceof NoAnswer) || error.reason !== "timeout") return;
    for (let count = 0; count < FAILURES_MAX && !this.#ended.signal.aborted; count++) {
      await this.note("timeout");
    }
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#stopProbing();
    clearTimeout(this.#lookAgain);
  }

  /** `undefined`: it answered. */
  #heard(silence: Silence | undefined): void {
    this.#hearing.note(silence);
    this.#reaching = undefined;
    if (silence !== undefined) this.#lookLater();
  }

  /** Where nobody asks, nobody would notice that it is back. */
  #lookLater(): void {
    if (this.#ended.signal.aborted) return;
    this.#lookAgain ??= setTimeout(() => {
      this.#lookAgain = undefined;
      // A down one is probed anyway.
      if (this.isUp || this.isDown) return;
      this.#asking ??= this.#ask().finally(() => this.#asking = undefined);
    }, ASK_AGAIN_MS);
  }

  #stopProbing(): void {
    clearInterval(this.#probing);
    this.#probing = undefined;
  }

  /** Resolves to why it did not say, if it did not. */
  async #ask(): Promise<unknown> {
    this.#askAgainAtMs = performance.now() + ASK_AGAIN_MS;
    try {
      const announced = await this.source.describe(this.#ended.signal);
      this.#heard(undefined);
      this.#priority = this.source.priority ?? announced ?? DEFAULT_PRIORITY;
      this.#askAgainAtMs = Infinity;
      return undefined;
    } catch (error) {
      this.#heard(error instanceof NoAnswer ? error.reason : undefined);
      this.#priority ??= DEFAULT_PRIORITY;
      return error;
    }
  }

  /** The breaker lets it through when its pause is over, and closes when it succeeds. */
  async #probe(): Promise<void> {
    try {
      await this.#breaker.execute(async () => {
        const announced = await this.source.describe(this.#ended.signal).catch((error) => {
          // Whatever it answers, it answers.
          if (error instanceof Failure && error.kind === "corrupt") return this.#priority;
          if (error instanceof NoAnswer) this.#heard(error.reason);
          throw error;
        });
        this.#heard(undefined);
        this.#priority = this.source.priority ?? announced ?? DEFAULT_PRIORITY;
      });
    } catch {
      // Still down, or not yet time to look.
    }
  }
}
