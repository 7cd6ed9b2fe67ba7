import { SharedTimer } from "../../base/shared_timer.ts";
import { NoAnswer } from "../upstream.ts";
import { dial } from "./dial.ts";

/** After this time without an answer we find out whether the dialing is to blame. */
const DIAL_DOUBT_MS = 100;

/** An upstream timed out; `message` says with what. */
export class UpstreamTimeout extends NoAnswer {
  constructor(what: string, limitMs: number) {
    super("timeout", `Cannot get answer: ${what} took over ${limitMs} ms`);
  }
}

export interface AnswerTimeouts {
  readonly dialTimeoutMs: number;
  readonly headerTimeoutMs: number;
  /** True where a proxy may stand in between: `fetch` decides then what to dial. */
  readonly viaProxy?: boolean;
}

/** The limits of all requests to one upstream. */
export interface AnswerLimits extends AnswerTimeouts {
  /** Each request waits here for its answer first. */
  readonly doubts: SharedTimer;
}

export function answerLimits(timeouts: AnswerTimeouts): AnswerLimits {
  const { dialTimeoutMs, headerTimeoutMs, viaProxy = false } = timeouts;
  const doubts = new SharedTimer(Math.min(DIAL_DOUBT_MS, dialTimeoutMs, headerTimeoutMs));
  return { dialTimeoutMs, headerTimeoutMs, viaProxy, doubts };
}

/**
 * Calls `onLate` when the dialing, or the answer after it, times out. `fetch` has no timeouts, and
 * does not tell the two apart. So a late answer makes us dial the same address beside it. Quick
 * answers share one timer.
 */
export class AnswerWatch implements Disposable {
  /** Made only when there is a dial to end: making and aborting one costs as much as a timer. */
  #dialing: AbortController | undefined;
  #isOver = false;
  readonly #startedAt = performance.now();
  readonly #onLate: (error: UpstreamTimeout) => void;
  readonly #waiting: Disposable;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(url: URL | string, limits: AnswerLimits, onLate: (error: UpstreamTimeout) => void) {
    this.#onLate = onLate;
    this.#waiting = limits.doubts.start(() => void this.#doubt(url, limits));
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#waiting[Symbol.dispose]();
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#dialing?.abort();
  }

  async #doubt(url: URL | string, { dialTimeoutMs, headerTimeoutMs, viaProxy }: AnswerLimits) {
    if (viaProxy) {
      return this.#limit("the answer", Math.max(dialTimeoutMs, headerTimeoutMs), this.#startedAt);
    }
    const doubtedAt = performance.now();
    this.#limit("connecting", dialTimeoutMs, this.#startedAt);
    this.#dialing = new AbortController();
    // The request itself tells better whether it succeeded.
    await dial(url, this.#dialing.signal);
    if (this.#isOver) return;
    const dialedAt = performance.now();
    // A dial that was slow for the doubt was as slow for the request.
    const connectedAt = dialedAt - doubtedAt < DIAL_DOUBT_MS ? this.#startedAt : dialedAt;
    clearTimeout(this.#timer);
    this.#limit("the answer", headerTimeoutMs, connectedAt);
  }

  #limit(what: string, limitMs: number, since: number): void {
    const leftMs = Math.max(0, limitMs - (performance.now() - since));
    this.#timer = setTimeout(() => {
      // A timer that is due in the turn in which it is cleared fires all the same (Deno 2.6.8).
      if (!this.#isOver) this.#onLate(new UpstreamTimeout(what, limitMs));
    }, leftMs);
  }
}
