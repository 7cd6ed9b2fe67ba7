/** Where standard error goes. */
export interface StatusHost {
  readonly writeError: (text: string) => void;
  /** Clears the line of the terminal behind standard error, and begins it again. */
  readonly clearErrorLine: () => void;
  /** The width of the terminal behind standard error; `undefined` when it is none. */
  readonly errorColumns: () => number | undefined;
}

const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 5_000;

/**
 * Says again and again how a long work goes, until it is disposed of: in one line that changes on
 * a terminal, in a plain line every few seconds elsewhere. `line` is told the columns it may fill.
 */
export class StatusLine implements Disposable {
  readonly #host: StatusHost;
  readonly #line: (columns: number | undefined) => string;
  readonly #timer: ReturnType<typeof setInterval>;
  #isShown = false;

  constructor(host: StatusHost, line: (columns: number | undefined) => string) {
    this.#host = host;
    this.#line = line;
    const isTerminal = host.errorColumns() !== undefined;
    const everyMs = isTerminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
    this.#timer = setInterval(() => this.#show(), everyMs);
    if (isTerminal) this.#show();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    if (this.#isShown) this.#host.clearErrorLine();
  }

  #show(): void {
    const columns = this.#host.errorColumns();
    const text = this.#line(columns);
    if (columns === undefined) return this.#host.writeError(`${text}\n`);
    this.#isShown = true;
    // The last column stays free: some terminals break the line there.
    this.#host.clearErrorLine();
    this.#host.writeError(text.slice(0, Math.max(1, columns - 1)));
  }
}
