import { Countdown } from "./countdown.ts";
import { formatMs } from "./format_units.ts";

/**
 * A signal that fires after `limitMs` with a TimeoutError. A standstill of this thread counts
 * little. Dispose of it when the work is over.
 */
export class Deadline implements Disposable {
  readonly #late = new AbortController();
  readonly #limit: Countdown;

  constructor(limitMs: number) {
    this.#limit = new Countdown(limitMs, () => {
      this.#late.abort(new DOMException(`no answer within ${formatMs(limitMs)}`, "TimeoutError"));
    });
  }

  get signal(): AbortSignal {
    return this.#late.signal;
  }

  [Symbol.dispose](): void {
    this.#limit[Symbol.dispose]();
  }
}

/**
 * The result of `work`, or `undefined` after `limitMs`, of which a standstill of this thread counts
 * little. Does not stop `work`.
 */
export async function within<Value>(
  work: Promise<Value>,
  limitMs: number,
): Promise<Value | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  using _limit = new Countdown(limitMs, () => resolve(undefined));
  return await Promise.race([work, late]);
}

/** The result of `work`. Throws the signal's reason if it fires first; does not stop `work`. */
export async function unlessAborted<Value>(
  work: Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const end = () => reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}
