import type { FairTurns } from "../../base/fair_turns.ts";
import type { Socket } from "./request_reader.ts";

/** A smaller write fits into the empty buffer of a socket. */
const LARGE_WRITE_BYTES = 64 * 1024;

/** The same connection. Where there are many, its reads and large writes take turns with theirs. */
export class FairSocket implements Socket {
  readonly #socket: Socket;
  readonly #turns: FairTurns;
  /** True if the last write found no room for all its bytes. */
  #isFull = false;

  constructor(socket: Socket, turns: FairTurns) {
    this.#socket = socket;
    this.#turns = turns;
  }

  get remoteAddr(): Deno.Addr {
    return this.#socket.remoteAddr;
  }

  read(bytes: Uint8Array): Promise<number | null> {
    if (!this.#turns.areCrowded) return this.#socket.read(bytes);
    return this.#turns.run(() => this.#socket.read(bytes));
  }

  write(bytes: Uint8Array): Promise<number> {
    return this.#turns.areCrowded ? this.#writeInCrowd(bytes) : this.#socket.write(bytes);
  }

  async #writeInCrowd(bytes: Uint8Array): Promise<number> {
    const mayWait = this.#isFull || bytes.length > LARGE_WRITE_BYTES;
    const begin = () => this.#socket.write(bytes);
    const written = await (mayWait ? this.#turns.run(begin) : begin());
    this.#isFull = written < bytes.length;
    return written;
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#socket.close();
  }
}
