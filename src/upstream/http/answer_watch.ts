import { Countdown } from "../../base/countdown.ts";
import { formatMs } from "../../base/format_units.ts";
import { SharedTimer } from "../../base/shared_timer.ts";
import { NoAnswer } from "../upstream.ts";
import { dial } from "./dial.ts";

/** Time without an answer after which larder tests whether the dialing is to blame. */
const DIAL_DOUBT_MS = 100;

/** An upstream timed out; `message` names the step that took too long. */
export class UpstreamTimeout extends NoAnswer {
  constructor(step: string, limitMs: number) {
    super("timeout", `Cannot get answer: ${step} took over ${formatMs(limitMs)}`);
  }
}

export interface AnswerTimeouts {
  readonly dialTimeoutMs: number;
  readonly headerTimeoutMs: number;
  /** True where a proxy may stand in between: `fetch` then chooses the address to dial. */
  readonly viaProxy?: boolean;
}

/** The limits of all requests to one upstream. */
export interface AnswerLimits extends AnswerTimeouts {
  /** Each request waits here for its answer first. */
  readonly doubts: SharedTimer;
  readonly doubtMs: number;
}

export function answerLimits(timeouts: AnswerTimeouts): AnswerLimits {
  const { dialTimeoutMs, headerTimeoutMs, viaProxy = false } = timeouts;
  const doubtMs = Math.min(DIAL_DOUBT_MS, dialTimeoutMs, headerTimeoutMs);
  const doubts = new SharedTimer(doubtMs);
  return { dialTimeoutMs, headerTimeoutMs, viaProxy, doubts, doubtMs };
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
  readonly #onLate: (error: UpstreamTimeout) => void;
  readonly #waiting: Disposable;
  #limit: Countdown | undefined;

  constructor(url: URL | string, limits: AnswerLimits, onLate: (error: UpstreamTimeout) => void) {
    this.#onLate = onLate;
    this.#waiting = limits.doubts.start(() => void this.#doubt(url, limits));
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#waiting[Symbol.dispose]();
    this.#limit?.[Symbol.dispose]();
    this.#dialing?.abort();
  }

  async #doubt(
    url: URL | string,
    { dialTimeoutMs, headerTimeoutMs, viaProxy, doubtMs }: AnswerLimits,
  ): Promise<void> {
    if (viaProxy) {
      return this.#wait("the answer", Math.max(dialTimeoutMs, headerTimeoutMs), doubtMs);
    }
    const doubtedAtMs = performance.now();
    this.#wait("connecting", dialTimeoutMs, doubtMs);
    this.#dialing = new AbortController();
    // The request itself shows better whether the connection works.
    await dial(url, this.#dialing.signal);
    if (this.#isOver) return;
    const dialMs = performance.now() - doubtedAtMs;
    // A dial that was slow for the doubt was as slow for the request.
    const waitedMs = dialMs < DIAL_DOUBT_MS ? doubtMs + dialMs : 0;
    this.#wait("the answer", headerTimeoutMs, waitedMs);
  }

  #wait(step: string, limitMs: number, waitedMs: number): void {
    this.#limit?.[Symbol.dispose]();
    this.#limit = new Countdown(Math.max(0, limitMs - waitedMs), () => {
      this.#onLate(new UpstreamTimeout(step, limitMs));
    });
  }
}
