import { clock } from "../../runtime/current.ts";
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

/** Connections up to this number never wait for each other. */
const CROWD_MIN = 64;

/** A quarter of Deno's 128: other work needs some, too. */
const BEGUN_MAX = 32;

/**
 * Gives each of many busy connections its turn. Deno serves 128 ready operations in a turn of its
 * event loop (the budget of a tokio task), those first that became ready last. Of more than 128
 * busy connections some were served again and again, and others waited for seconds (measured, 2.6.8
 * and 2.9.6). In a crowd at most 32 operations without a ready socket begin in a turn. Further ones
 * wait, in the order of arrival.
 */
export class FairTurns {
  readonly #countOpen: () => number;
  readonly #waiting: (() => void)[] = [];
  /** Operations that began in this turn, and found no ready socket. */
  #begun = 0;
  #turn = 0;
  /** True if an operation had to wait since the last turn. */
  #isBusy = false;
  #isTurnDue = false;

  /** `countOpen`: the number of connections that take turns. */
  constructor(countOpen: () => number) {
    this.#countOpen = countOpen;
  }

  /** True if `run` may let an operation wait. */
  get areCrowded(): boolean {
    return this.#countOpen() > CROWD_MIN;
  }

  /** Begins this read or write in its turn, and resolves with its result. */
  async run<T>(begin: () => Promise<T>): Promise<T> {
    await this.#ownTurn();
    const turn = this.#turn;
    try {
      return await begin();
    } finally {
      // Within the same turn: its socket was ready.
      if (turn === this.#turn && this.#begun > 0) this.#begun--;
    }
  }

  #ownTurn(): Promise<void> | undefined {
    if (!this.#isTurnDue) this.#goOn();
    if (!this.#isBusy && this.#begun < BEGUN_MAX) {
      this.#begun++;
      return undefined;
    }
    this.#isBusy = true;
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Begins more at once while sockets are ready, else in the next turn. */
  #goOn(): void {
    this.#isTurnDue = true;
    clock.soon(() => {
      if (this.#waiting.length > 0 && this.#begun < BEGUN_MAX) this.#release();
      // Set behind all other work: the event loop looks for ready sockets before it fires.
      else clock.after(0, () => this.#nextTurn());
    });
  }

  #nextTurn(): void {
    this.#turn++;
    this.#begun = 0;
    this.#isTurnDue = false;
    this.#isBusy = this.#waiting.length > 0;
    if (this.#isBusy) this.#release();
  }

  #release(): void {
    const released = this.#waiting.splice(0, BEGUN_MAX - this.#begun);
    this.#begun += released.length;
    this.#goOn();
    for (const begin of released) begin();
  }
}
