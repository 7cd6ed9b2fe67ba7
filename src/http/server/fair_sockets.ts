import { FairTurns } from "../../base/fair_turns.ts";
import type { Socket } from "./request_reader.ts";

/** A smaller write fits into the empty buffer of a socket. */
const LARGE_WRITE_BYTES = 64 * 1024;

/** Wraps connections so that they take turns where there are many (see `FairTurns`). */
export class FairSockets {
  readonly #turns: FairTurns;

  /** `countOpen`: the number of open connections. */
  constructor(countOpen: () => number) {
    this.#turns = new FairTurns(countOpen);
  }

  /** The same connection; its reads and large writes take turns with those of the others. */
  inTurn(socket: Socket): Socket {
    return new FairSocket(socket, this.#turns);
  }
}

class FairSocket implements Socket {
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
