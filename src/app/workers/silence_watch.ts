/** A Worker with jobs is doubted after once or twice this time without a message. */
const SILENCE_MS = 500;

/** Notices that a Worker with jobs says nothing. One timer for all jobs: they are short. */
export class SilenceWatch implements Disposable {
  readonly #unheard: () => void;
  #jobs = 0;
  #isUnheard = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `unheard`: called again and again while the silence lasts. */
  constructor(unheard: () => void) {
    this.#unheard = unheard;
  }

  began(): void {
    this.#jobs++;
    this.#timer ??= setTimeout(() => this.#look(), SILENCE_MS);
  }

  ended(): void {
    this.#jobs--;
  }

  /** A message came. */
  heard(): void {
    this.#isUnheard = false;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    if (this.#jobs === 0) return;
    if (this.#isUnheard) this.#unheard();
    this.#isUnheard = true;
    this.#timer = setTimeout(() => this.#look(), SILENCE_MS);
  }
}
