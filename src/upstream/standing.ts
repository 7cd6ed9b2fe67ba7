import { Failure } from "../base/failure.ts";
import { SILENCES_MAX } from "./health.ts";
import { Hearing } from "./hearing.ts";
import { Probes } from "./probes.ts";
import {
  isNoAnswer,
  NoAnswer,
  type PooledSource,
  type QueuedReading,
  type Silence,
} from "./upstream.ts";

/** What Nix takes for the priority of a cache that names none. */
const DEFAULT_PRIORITY = 50;

/** An upstream that would not say its priority is asked again after this. */
const ASK_AGAIN_MS = 30_000;

/**
 * What is known of an upstream beyond single answers: whether it is down, and its priority. A down
 * one is only probed: in the background, and by requests that nobody else can answer.
 */
export class Standing implements Disposable {
  readonly source: PooledSource;
  readonly #changed: (isDown: boolean) => void;
  readonly #probes = new Probes(() => this.#probe(), () => this.#probePauseMs);
  readonly #ended = new AbortController();
  #priority: number | undefined;
  #asking: Promise<unknown> | undefined;
  #askAgainAtMs = -Infinity;
  readonly #hearing = new Hearing();
  #reaching: Promise<boolean> | undefined;
  #lookAgain: ReturnType<typeof setTimeout> | undefined;

  constructor(source: PooledSource, changed: (isDown: boolean) => void) {
    this.source = source;
    this.#priority = source.priority;
    this.#changed = changed;
  }

  /** For people: false also when the last thing that was asked of it did not come. */
  get isUp(): boolean {
    return !this.isDown && !this.#hearing.isSilent;
  }

  get isDown(): boolean {
    return this.#hearing.health.state === "down";
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
    const reading = await answer;
    if (!ended.aborted && reading.kind !== "late") {
      const isSilent = reading.kind === "failed" && isNoAnswer(reading.reason);
      this.note(isSilent ? reading.reason : undefined);
    }
    return reading;
  }

  /** Counts what came of asking the upstream, if anything. */
  note(silence: Silence | undefined): void {
    this.#heard(silence, { isProbe: false });
  }

  /**
   * Looks whether a down one is back, once for all who ask meanwhile. Resolves when that is known,
   * or took too long; mostly at once for a silent one.
   */
  async probed(): Promise<void> {
    if (this.isDown) await this.#probes.join(this.isSilent);
  }

  /**
   * Looks at it before anybody asks. One that says nothing is down from then on; one that cannot
   * be reached costs nobody any time, and may be there the next moment. Resolves to why it gave no
   * answer, if it gave none.
   */
  async lookAtStart(): Promise<unknown> {
    this.#asking ??= this.#ask().finally(() => this.#asking = undefined);
    const error = await this.#asking;
    if (this.#ended.signal.aborted) return undefined;
    if (error instanceof NoAnswer && error.reason === "timeout") {
      for (let count = 0; count < SILENCES_MAX; count++) this.note("timeout");
    }
    return error;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#probes[Symbol.dispose]();
    clearTimeout(this.#lookAgain);
  }

  /** `undefined`: it answered. `counted`: that speaks of its health. */
  #heard(silence: Silence | undefined, counted?: { readonly isProbe: boolean }): void {
    const wasDown = this.isDown;
    if (counted === undefined) this.#hearing.note(silence);
    else this.#hearing.count({ silence, ...counted });
    this.#reaching = undefined;
    if (this.#ended.signal.aborted) return;
    if (silence !== undefined) this.#lookLater();
    if (wasDown === this.isDown) return;
    this.#probes.changed();
    this.#changed(this.isDown);
  }

  /** Where nobody asks, nobody would notice that it is back. */
  #lookLater(): void {
    this.#lookAgain ??= setTimeout(() => {
      this.#lookAgain = undefined;
      // A down one is probed anyway.
      if (this.isUp || this.isDown) return;
      this.#asking ??= this.#ask().finally(() => this.#asking = undefined);
    }, ASK_AGAIN_MS);
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

  get #probePauseMs(): number | undefined {
    const { health } = this.#hearing;
    return health.state === "down" ? health.pauseMs : undefined;
  }

  async #probe(): Promise<void> {
    try {
      const announced = await this.source.describe(this.#ended.signal).catch((error) => {
        // Whatever it answers, it answers.
        if (error instanceof Failure && error.kind === "corrupt") return this.#priority;
        throw error;
      });
      this.#priority = this.source.priority ?? announced ?? DEFAULT_PRIORITY;
      this.#heard(undefined, { isProbe: true });
    } catch (error) {
      const silence = error instanceof NoAnswer ? error.reason : "unreachable";
      // A later probe may have been answered: then an older one says nothing new.
      if (this.isDown) this.#heard(silence, { isProbe: true });
    }
  }
}
