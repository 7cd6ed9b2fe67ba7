import { formatMs } from "../../base/format_units.ts";
import type { SharedTimer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { NoAnswer } from "../upstream.ts";

/** Time without an answer after which larder tests the dialing. */
const DIAL_TEST_AFTER_MS = 100;

/** An upstream timed out; `message` names the step that took too long. */
export class UpstreamTimeout extends NoAnswer {
  constructor(step: string, limitMs: number) {
    super("timeout", `Cannot get answer: ${step} took over ${formatMs(limitMs)}`);
  }
}

export interface AnswerTimeouts {
  readonly dialTimeoutMs: number;
  /** The longest wait for an answer over a connection that stands. */
  readonly answerTimeoutMs: number;
  /** True where a proxy may stand in between: `fetch` then chooses the address to dial. */
  readonly viaProxy?: boolean;
}

/** The limits of all requests to one upstream. */
export interface AnswerLimits extends AnswerTimeouts {
  /** Each request waits here for its answer first. */
  readonly dialTests: SharedTimer;
  readonly dialTestAfterMs: number;
}

export function answerLimits(timeouts: AnswerTimeouts): AnswerLimits {
  const { dialTimeoutMs, answerTimeoutMs, viaProxy = false } = timeouts;
  const dialTestAfterMs = Math.min(DIAL_TEST_AFTER_MS, dialTimeoutMs, answerTimeoutMs);
  const dialTests = clock.sharedTimer(dialTestAfterMs);
  return { dialTimeoutMs, answerTimeoutMs, viaProxy, dialTests, dialTestAfterMs };
}

export interface AnswerWatchDeps {
  readonly limits: AnswerLimits;
  readonly onLate: (error: UpstreamTimeout) => void;
  /** Dials the address of the request, beside it. */
  readonly dial: (signal: AbortSignal) => Promise<unknown>;
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
  readonly #dial: AnswerWatchDeps["dial"];
  readonly #waiting: Disposable;
  #limit: Disposable | undefined;

  constructor({ limits, onLate, dial }: AnswerWatchDeps) {
    this.#onLate = onLate;
    this.#dial = dial;
    this.#waiting = limits.dialTests.start(() => void this.#testDial(limits));
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#waiting[Symbol.dispose]();
    this.#limit?.[Symbol.dispose]();
    this.#dialing?.abort();
  }

  async #testDial(
    { dialTimeoutMs, answerTimeoutMs, viaProxy, dialTestAfterMs }: AnswerLimits,
  ): Promise<void> {
    if (viaProxy) {
      return this.#wait("the answer", Math.max(dialTimeoutMs, answerTimeoutMs), dialTestAfterMs);
    }
    const dialedAtMs = clock.nowMs();
    this.#wait("connecting", dialTimeoutMs, dialTestAfterMs);
    this.#dialing = new AbortController();
    // The request itself shows better whether the connection works.
    await this.#dial(this.#dialing.signal);
    if (this.#isOver) return;
    const dialMs = clock.nowMs() - dialedAtMs;
    // A dial that was slow for the test was as slow for the request.
    const waitedMs = dialMs < DIAL_TEST_AFTER_MS ? dialTestAfterMs + dialMs : 0;
    this.#wait("the answer", answerTimeoutMs, waitedMs);
  }

  #wait(step: string, limitMs: number, waitedMs: number): void {
    this.#limit?.[Symbol.dispose]();
    this.#limit = clock.countdown(limitMs - waitedMs, () => {
      this.#onLate(new UpstreamTimeout(step, limitMs));
    });
  }
}
