/**
 * A signal that fires with the first of several, with its reason. Use it in place of
 * `AbortSignal.any`: Deno 2.6.8 collects the result of that while somebody listens to it, so an
 * abort may be lost. Dispose of it where one of the signals outlives the work.
 */
export class EitherSignal implements Disposable {
  readonly #either = new AbortController();
  readonly #signals: readonly AbortSignal[];

  constructor(...signals: readonly AbortSignal[]) {
    this.#signals = signals;
    for (const signal of signals) {
      if (signal.aborted) return this.#fire(signal);
      signal.addEventListener("abort", this.#fired);
    }
  }

  get signal(): AbortSignal {
    return this.#either.signal;
  }

  /** From now on it does not fire. */
  [Symbol.dispose](): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#fired);
  }

  readonly #fired = ({ target }: Event) => void this.#fire(target as AbortSignal);

  #fire(signal: AbortSignal): this {
    this[Symbol.dispose]();
    this.#either.abort(signal.reason);
    return this;
  }
}
