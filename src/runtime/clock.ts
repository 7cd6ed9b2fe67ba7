import { clearImmediate, setImmediate } from "node:timers";

/** A callback that is due later. */
export interface Timer extends Disposable {
  /** The callback is not called any more, even if it is due already. */
  cancel(): void;
}

/**
 * Time: two clocks, timers, and the waits that are made of them. The methods that a clock must have
 * itself are few; all others rest on them, so that a simulated clock has the same ones.
 */
export abstract class Clock {
  /** Milliseconds since some moment. Never steps back. */
  abstract nowMs(): number;

  /** The time of day, in milliseconds since 1970. May step in both directions. */
  abstract wallMs(): number;

  /**
   * Calls `due` once, `ms` later. A timer that does not hold the process lets it end meanwhile.
   */
  abstract after(ms: number, due: () => void, holdsProcess?: boolean): Timer;

  /** Calls `beat` every `ms`. */
  abstract every(ms: number, beat: () => void, holdsProcess?: boolean): Timer;

  /** Calls `run` once the callbacks that are due now have run, before the next timers. */
  abstract soon(run: () => void): Timer;

  /** Resolves after `ms`, or as soon as `signal` fires. The caller checks the signal. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = this.after(ms, end);
      signal?.addEventListener("abort", end, { once: true });
      function end(): void {
        timer.cancel();
        signal?.removeEventListener("abort", end);
        resolve();
      }
    });
  }

  /** Pauses as long as a batch took: requests come first, so long work leaves them half the time. */
  pauseBehindBatch(tookMs: number, signal?: AbortSignal): Promise<void> {
    return this.pause(Math.min(BATCH_PAUSE_MAX_MS, Math.max(1, tookMs)), signal);
  }

  /** Resolves behind all events that are due: the thread has answered what came meanwhile. */
  turn(): Promise<void> {
    return this.pause(0);
  }

  /** Resolves once the callbacks that are due now have run. Quicker than `turn`. */
  soonOver(): Promise<void> {
    return new Promise((resolve) => void this.soon(resolve));
  }

  /**
   * Calls `due` after `ms`, unless it is disposed of before. A standstill of this thread counts as
   * an eighth of the time at most. An answer may have come meanwhile that nobody has read yet.
   */
  countdown(ms: number, due: () => void): Disposable {
    return new Countdown(this, ms, due);
  }

  /**
   * A signal that fires after `limitMs` with a TimeoutError. A standstill of this thread counts
   * little. Dispose of it when the work is over.
   */
  deadline(limitMs: number): Deadline {
    const late = new AbortController();
    const limit = this.countdown(limitMs, () => {
      late.abort(new DOMException(`no answer within ${formatLimit(limitMs)}`, "TimeoutError"));
    });
    return { signal: late.signal, [Symbol.dispose]: () => limit[Symbol.dispose]() };
  }

  /**
   * The result of `work`, or `undefined` after `limitMs`, of which a standstill of this thread
   * counts little. Does not stop `work`.
   */
  async within<Value>(work: Promise<Value>, limitMs: number): Promise<Value | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    using _limit = this.countdown(limitMs, () => resolve(undefined));
    return await Promise.race([work, late]);
  }

  /** A slice of time for long work on the thread that answers requests. */
  slice(signal?: AbortSignal): TimeSlice {
    return new TimeSlice(this, signal);
  }

  /** Many waits of one length on one timer. */
  sharedTimer(delayMs: number): SharedTimer {
    return new SharedTimer(this, delayMs);
  }
}

/** The longest pause behind a batch: a longer batch has waited for the disk. */
const BATCH_PAUSE_MAX_MS = 10;

function formatLimit(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)}ms` : `${(ms / 1_000).toFixed(1)}s`;
}

/** A signal that fires when the time is over. Disposing of it stops the time. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/** The parts of a countdown: a standstill ends one of them at most. */
const PARTS = 8;

class Countdown implements Disposable {
  readonly #clock: Clock;
  readonly #partMs: number;
  readonly #due: () => void;
  #leftMs: number;
  #timer: Timer | undefined;

  constructor(clock: Clock, ms: number, due: () => void) {
    this.#clock = clock;
    this.#partMs = Math.ceil(ms / PARTS);
    this.#leftMs = ms;
    this.#due = due;
    this.#next();
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }

  #next(): void {
    const partMs = Math.min(this.#partMs, this.#leftMs);
    this.#timer = this.#clock.after(partMs, () => {
      this.#leftMs -= partMs;
      if (this.#leftMs > 0) this.#next();
      else this.#due();
    });
  }
}

interface Wait {
  readonly dueAtMs: number;
  readonly late: () => void;
}

/**
 * Many waits of one length on one timer. Nearly all of them end before they are due, and a timer of
 * its own for each costs more than the rest of a wait.
 */
export class SharedTimer {
  readonly #clock: Clock;
  readonly #delayMs: number;
  /** Waits in the order of their times, since all have one length. */
  readonly #waits = new Set<Wait>();
  #timer: Timer | undefined;

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  /** Calls `late` after the delay, unless the result is disposed of before. It must not throw. */
  start(late: () => void): Disposable {
    const wait = { dueAtMs: this.#clock.nowMs() + this.#delayMs, late };
    this.#waits.add(wait);
    if (this.#timer === undefined) this.#arm(this.#delayMs);
    return { [Symbol.dispose]: () => this.#end(wait) };
  }

  #end(wait: Wait): void {
    if (!this.#waits.delete(wait) || this.#waits.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#fire());
  }

  #fire(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.nowMs();
    for (const wait of this.#waits) {
      if (wait.dueAtMs > nowMs) {
        if (this.#timer === undefined) this.#arm(wait.dueAtMs - nowMs);
        return;
      }
      this.#waits.delete(wait);
      wait.late();
    }
  }
}

/**
 * The time that work may hold the thread. An answer needs a few turns of the event loop, so a
 * cache hit waits for a few slices of such work.
 */
const SLICE_MS = 2;

/**
 * A slice of time for long work on the thread that answers requests:
 * `if (slice.isOver) await slice.yield()`.
 */
export class TimeSlice {
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  #startedAtMs: number;

  constructor(clock: Clock, signal?: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#startedAtMs = clock.nowMs();
  }

  get isOver(): boolean {
    return this.#clock.nowMs() - this.#startedAtMs >= SLICE_MS;
  }

  /** Starts the next slice after all events that are due. Throws if the signal has fired. */
  async yield(): Promise<void> {
    await this.#clock.turn();
    this.#signal?.throwIfAborted();
    this.#startedAtMs = this.#clock.nowMs();
  }
}

/** The clock of this machine, and the timers of this thread. */
export class SystemClock extends Clock {
  override nowMs(): number {
    return performance.now();
  }

  override wallMs(): number {
    return Date.now();
  }

  override after(ms: number, due: () => void, holdsProcess = true): Timer {
    const timer = new SystemTimer(due);
    timer.start(setTimeout(() => timer.fire(), ms), holdsProcess);
    return timer;
  }

  override every(ms: number, beat: () => void, holdsProcess = true): Timer {
    const timer = new SystemTimer(beat);
    timer.start(setInterval(() => timer.fire(), ms), holdsProcess);
    return timer;
  }

  override soon(run: () => void): Timer {
    const immediate = setImmediate(run);
    const cancel = () => clearImmediate(immediate);
    return { cancel, [Symbol.dispose]: cancel };
  }
}

type Handle = ReturnType<typeof setTimeout>;

class SystemTimer implements Timer {
  readonly #due: () => void;
  #handle: Handle | undefined;
  #isCancelled = false;

  constructor(due: () => void) {
    this.#due = due;
  }

  start(handle: Handle, holdsProcess: boolean): void {
    this.#handle = handle;
    if (!holdsProcess) Deno.unrefTimer(handle as unknown as number);
  }

  // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
  fire(): void {
    if (!this.#isCancelled) this.#due();
  }

  cancel(): void {
    this.#isCancelled = true;
    clearTimeout(this.#handle);
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}
