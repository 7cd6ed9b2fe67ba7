import { type Health, HEALTHY, type Heard, next } from "./health.ts";
import type { Silence } from "./upstream.ts";

/** What was last heard of an upstream. */
export class Hearing {
  #health: Health = HEALTHY;
  #lastSilence: Silence | undefined;
  #isProven = false;
  #isSilent = false;

  get health(): Health {
    return this.#health;
  }

  /** How it was last silent, if it ever was. */
  get lastSilence(): Silence | undefined {
    return this.#lastSilence;
  }

  /**
   * True when it has answered, be it nonsense, and no timeout has come after that: it is worth
   * waiting for.
   */
  get isProven(): boolean {
    return this.#isProven;
  }

  /** True when what was last asked of it did not come. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** `undefined`: it answered. One that cannot be reached costs nobody any time. */
  note(silence: Silence | undefined): void {
    this.#isSilent = silence !== undefined;
    if (silence !== undefined) this.#lastSilence = silence;
    if (silence !== "unreachable") this.#isProven = silence === undefined;
  }

  /** The same, and it speaks of its health. */
  count(heard: Heard): void {
    this.note(heard.silence);
    this.#health = next(this.#health, heard);
  }
}
