import type { Bytes } from "../../src/base/bytes.ts";
import { inTurn } from "./in_turn.ts";

const HEAD_BYTES_MAX = 64 * 1024;
const READ_BYTES = 64 * 1024;

/**
 * The input of a connection, as heads, lines or bytes. With `readsAhead` it reads bytes as they
 * come, so that the other side's leaving shows at once. Else it reads on request only, so that
 * the other side feels a slow reader.
 */
export class Inbox {
  readonly #conn: Pick<Deno.Conn, "read">;
  readonly #left = Promise.withResolvers<void>();
  readonly #readsAhead: boolean;
  #bytes: Bytes = new Uint8Array(0);
  #ended = false;
  #reading: Promise<void> | undefined;

  constructor(conn: Pick<Deno.Conn, "read">, { readsAhead }: { readonly readsAhead: boolean }) {
    this.#conn = conn;
    this.#readsAhead = readsAhead;
    if (readsAhead) this.#more();
  }

  /** Resolves when a read has found the connection ended, broken or closed. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** Resolves when no read is running: with `readsAhead`, when the connection has ended. */
  async idle(): Promise<void> {
    while (this.#reading !== undefined) await this.#reading;
  }

  /** One head with its empty line; `undefined` when the connection ended before it. */
  async head(): Promise<string | undefined> {
    for (;;) {
      const end = endOfHead(this.#bytes);
      if (end > 0) return new TextDecoder("latin1").decode(this.#take(end));
      if (this.#ended || this.#bytes.length > HEAD_BYTES_MAX) return undefined;
      await this.#more();
    }
  }

  /** Whatever has come, at most `byteLength` bytes; empty when the connection has ended. */
  async some(byteLength: number): Promise<Bytes> {
    while (this.#bytes.length === 0 && !this.#ended) await this.#more();
    return this.#take(byteLength);
  }

  /** Up to and with "\n"; shorter when the connection ended before it. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#bytes.indexOf(10) + 1;
      if (end > 0 || this.#ended) {
        return new TextDecoder("latin1").decode(this.#take(end || this.#bytes.length));
      }
      await this.#more();
    }
  }

  #take(byteLength: number): Bytes {
    const taken = this.#bytes.subarray(0, byteLength);
    this.#bytes = this.#bytes.subarray(byteLength);
    return taken;
  }

  #more(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      if (this.#readsAhead && !this.#ended) this.#more();
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(READ_BYTES);
    // A reset, or the connection was closed here: either way nothing more comes.
    const read = await inTurn(() => this.#conn.read(buffer)).catch(() => null);
    if (read === null) {
      this.#ended = true;
      this.#left.resolve();
      return;
    }
    const grown = new Uint8Array(this.#bytes.length + read);
    grown.set(this.#bytes);
    grown.set(buffer.subarray(0, read), this.#bytes.length);
    this.#bytes = grown;
  }
}

function endOfHead(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(13); at >= 0; at = bytes.indexOf(13, at + 1)) {
    if (bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) return at + 4;
  }
  return 0;
}
