import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";

/** A Worker with jobs counts as silent after once or twice this time without a message. */
const SILENCE_MS = 500;

/** Notices that a Worker with jobs says nothing. One timer for all jobs: they are short. */
export class SilenceWatch implements Disposable {
  readonly #onSilence: () => void;
  #jobs = 0;
  #hasBeenSilent = false;
  #timer: Timer | undefined;

  /** `onSilence`: called again and again while the silence lasts. */
  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  began(): void {
    this.#jobs++;
    this.#timer ??= clock.after(SILENCE_MS, () => this.#checkSilence());
  }

  ended(): void {
    this.#jobs--;
  }

  /** Call it when a message of the Worker came. */
  received(): void {
    this.#hasBeenSilent = false;
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #checkSilence(): void {
    this.#timer = undefined;
    if (this.#jobs === 0) return;
    if (this.#hasBeenSilent) this.#onSilence();
    this.#hasBeenSilent = true;
    this.#timer = clock.after(SILENCE_MS, () => this.#checkSilence());
  }
}
