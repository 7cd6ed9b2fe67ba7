import type { Bytes } from "../../src/base/bytes.ts";
import type { Socket } from "../../src/http/server/request_reader.ts";

/** A connection whose client sends these pieces and then nothing more. */
export class MemorySocket implements Socket {
  readonly #pieces: Uint8Array[];
  readonly #written: Bytes[] = [];
  readonly remoteAddr: Deno.Addr = { transport: "tcp", hostname: "192.0.2.7", port: 4711 };
  isClosed = false;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces.filter(({ length }) => length > 0);
  }

  async read(into: Uint8Array): Promise<number | null> {
    const piece = this.#pieces.shift();
    if (piece === undefined) return null;
    const taken = piece.subarray(0, into.length);
    into.set(taken);
    if (taken.length < piece.length) this.#pieces.unshift(piece.subarray(taken.length));
    return taken.length;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.#written.push(bytes.slice());
    return bytes.length;
  }

  async closeWrite(): Promise<void> {}

  close(): void {
    this.isClosed = true;
  }

  /** All that the server said, byte for character. */
  async said(): Promise<string> {
    const bytes = await new Blob(this.#written).bytes();
    return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  }
}
