import { clock } from "../runtime/current.ts";
import type { Timer } from "../runtime/clock.ts";

/** Time without a request after which the result goes. */
const IDLE_MAX_MS = 10_000;

interface Held<Value> {
  readonly key: readonly unknown[];
  readonly value: Promise<Value>;
}

/**
 * The result of an expensive read, for those that ask for it before anything changes. It goes after
 * ten seconds without a request: it may be large.
 */
export class HeldRead<Value> implements Disposable {
  #held: Held<Value> | undefined;
  #timer: Timer | undefined;

  /** The held result if it has the same key, else that of `read`. It holds no failure. */
  async get(key: readonly unknown[], read: () => Promise<Value>): Promise<Value> {
    this.#timer?.cancel();
    const held = this.#held;
    const isSame = held?.key.every((part, at) => part === key[at]) ?? false;
    const reading = held !== undefined && isSame ? held : { key, value: read() };
    this.#held = reading;
    try {
      const value = await reading.value;
      this.#dropLater();
      return value;
    } catch (error) {
      if (this.#held === reading) this.#held = undefined;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#held = undefined;
  }

  #dropLater(): void {
    this.#timer?.cancel();
    this.#timer = clock.after(IDLE_MAX_MS, () => void (this.#held = undefined), false);
  }
}
