import { playRuntime } from "../../src/runtime/current.ts";
import { SystemClock } from "../../src/runtime/clock.ts";

/** A clock that stands still until a test says how long something took. Timers run as ever. */
export class HeldClock extends SystemClock implements Disposable {
  #nowMs = 1_000_000;
  readonly #wallMs: number;
  readonly #played: Disposable;

  /** `wallMs`: the time of day as it is made. */
  constructor(wallMs: number) {
    super();
    this.#wallMs = wallMs - this.#nowMs;
    this.#played = playRuntime({ clock: this });
  }

  override nowMs(): number {
    return this.#nowMs;
  }

  override wallMs(): number {
    return this.#wallMs + this.#nowMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  [Symbol.dispose](): void {
    this.#played[Symbol.dispose]();
  }
}
