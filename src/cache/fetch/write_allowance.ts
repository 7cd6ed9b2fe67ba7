import { FetchError } from "./fetch_error.ts";

/** The bytes that a file may have on disk; more must be reserved before a write. */
export class WriteAllowance {
  readonly #ask: (bytes: number) => Promise<number>;
  #bytes: number;

  constructor(bytes: number, ask: (bytes: number) => Promise<number>) {
    this.#bytes = bytes;
    this.#ask = ask;
  }

  /** True when `bytes` may be written without a reservation. */
  has(bytes: number): boolean {
    return bytes <= this.#bytes;
  }

  /** Resolves when `bytes` may be written. Throws FetchError "room" when they do not fit. */
  async need(bytes: number): Promise<void> {
    if (this.has(bytes)) return;
    this.#bytes = await this.#ask(bytes);
    if (!this.has(bytes)) throw new FetchError("room", `there is no room for ${bytes} bytes`);
  }
}
