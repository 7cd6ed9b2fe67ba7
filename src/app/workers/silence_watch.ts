/** A Worker with jobs is doubted after once or twice this time without a message. */
const SILENCE_MS = 500;

/** Notices that a Worker with jobs says nothing. One timer for all jobs: they are short. */
export class SilenceWatch implements Disposable {
  readonly #silent: () => void;
  #jobs = 0;
  #isSilent = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `silent`: called again and again while the silence lasts. */
  constructor(silent: () => void) {
    this.#silent = silent;
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
    this.#isSilent = false;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    if (this.#jobs === 0) return;
    if (this.#isSilent) this.#silent();
    this.#isSilent = true;
    this.#timer = setTimeout(() => this.#look(), SILENCE_MS);
  }
}
