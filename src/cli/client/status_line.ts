import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";

/** Standard error as a status line uses it. */
export interface StatusOutput {
  readonly writeError: (text: string) => void;
  /** Clears the current line of the terminal. */
  readonly clearErrorLine: () => void;
  /** The terminal's width; `undefined` if standard error is no terminal. */
  readonly errorColumns: () => number | undefined;
}

const TERMINAL_EVERY_MS = 200;
const PLAIN_EVERY_MS = 5_000;
const USUAL_COLUMNS = 80;

/**
 * Shows progress until disposed of: one changing line on a terminal, else a plain line every few
 * seconds. `line` gets the terminal's width.
 */
export class StatusLine implements Disposable {
  readonly #output: StatusOutput;
  readonly #line: (columns: number | undefined) => string;
  readonly #timer: Timer;
  #isShown = false;

  constructor(output: StatusOutput, line: (columns: number | undefined) => string) {
    this.#output = output;
    this.#line = line;
    const isTerminal = output.errorColumns() !== undefined;
    const everyMs = isTerminal ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
    this.#timer = clock.every(everyMs, () => this.#show());
    if (isTerminal) this.#show();
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    if (this.#isShown) this.#output.clearErrorLine();
  }

  #show(): void {
    const known = this.#output.errorColumns();
    // Some terminals say that they have no columns.
    const columns = known === 0 ? USUAL_COLUMNS : known;
    const text = this.#line(columns);
    if (columns === undefined) return this.#output.writeError(`${text}\n`);
    this.#isShown = true;
    // The last column stays free, as some terminals wrap there.
    this.#output.clearErrorLine();
    this.#output.writeError(text.slice(0, Math.max(1, columns - 1)));
  }
}
