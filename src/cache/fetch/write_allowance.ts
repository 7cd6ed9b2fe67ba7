import { FetchError } from "./fetch_error.ts";

/** How many bytes a file may have on disk; more has to be asked for before it is written. */
export class WriteAllowance {
  readonly #ask: (bytes: number) => Promise<number>;
  #bytes: number;

  constructor(bytes: number, ask: (bytes: number) => Promise<number>) {
    this.#bytes = bytes;
    this.#ask = ask;
  }

  /** True when `bytes` may be written without asking. */
  has(bytes: number): boolean {
    return bytes <= this.#bytes;
  }

  /** Resolves when `bytes` may be written. Throws FetchError "room" when they may not. */
  async need(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    this.#bytes = await this.#ask(bytes);
    if (!this.has(bytes)) throw new FetchError("room", `there is no room for ${bytes} bytes`);
  }
}
