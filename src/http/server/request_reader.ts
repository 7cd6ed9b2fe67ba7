import type { Activity } from "./activity.ts";
import { Refusal } from "./refusal.ts";
import { mayBeRequestLine } from "./request_head.ts";

/** What the server needs of a connection. */
export type Socket = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close" | "remoteAddr">;

/** A request of Nix has some 200 bytes; ten thousand idle connections hold one of these each. */
const SMALL_BYTES = 1024;

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_LINES_MAX = 100;
const EMPTY_LINES_MAX = 8;

/** Read size of a body. */
const BODY_BYTES = 64 * 1024;

/** Enough to see the method. */
const METHOD_BYTES_MAX = 20;

const CR = 13;
const LF = 10;

// A byte order mark is no part of a request line.
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** What has come in on a connection and was not used yet. */
export class RequestReader {
  readonly #socket: Socket;
  readonly #activity: Activity;
  #bytes = new Uint8Array(SMALL_BYTES);
  #length = 0;
  #reading: Promise<boolean> | undefined;
  /** Of the head that is coming in: lines that are whole, and where the next one begins. */
  #lines = 0;
  #lineStart = 0;
  /** In front of the head that is coming in. */
  #emptyLines = 0;
  #isStopped = false;

  constructor(socket: Socket, activity: Activity) {
    this.#socket = socket;
    this.#activity = activity;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** True once the client was turned away. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Fails every read that is under way or begins. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Reads more; false at the end of the connection. Throws when it broke. */
  fill(): Promise<boolean> {
    return this.#reading ??= this.#read();
  }

  /** The next head; `undefined` when the connection ended where one could have begun. */
  async head(): Promise<string | undefined> {
    this.#emptyLines = 0;
    for (let phase: "idle" | "head" | undefined;;) {
      this.#skipEmptyLines();
      const wasEmpty = this.isEmpty;
      const next = wasEmpty ? "idle" : "head";
      if (next !== phase) this.#activity.enter(phase = next);
      const end = this.#endOfHead();
      if (end > 0) return DECODER.decode(this.take(end));
      if (await this.fill()) continue;
      if (wasEmpty) return undefined;
      throw this.#refusal(400, "half a head");
    }
  }

  /** A line of a body's framing, without its end. */
  async line(lengthMax: number): Promise<string> {
    for (let from = 0;;) {
      const end = this.#find(LF, from);
      // One more is the carriage return.
      if ((end < 0 ? this.#length : end) > lengthMax + 1) {
        throw new Refusal(400, "long line in a body");
      }
      if (end >= 0) return DECODER.decode(this.take(lineEnd(this.#bytes, end) + 2)).slice(0, -2);
      from = this.#length;
      await this.#fillBody();
    }
  }

  /** Some bytes of a body, at most `lengthMax`; what they lie in is the caller's. */
  async some(lengthMax: number): Promise<Uint8Array<ArrayBuffer>> {
    if (!this.isEmpty) return this.take(Math.min(lengthMax, this.#length)).slice();
    if (this.#reading === undefined) {
      const bytes = new Uint8Array(Math.min(lengthMax, BODY_BYTES));
      this.#activity.enter("body");
      const read = await this.#socket.read(bytes);
      this.#checkNotStopped();
      if (read === null) throw new Refusal(400, "half a body");
      // Whoever collects small pieces must not hold the whole buffer for each.
      return read < bytes.length / 2 ? bytes.slice(0, read) : bytes.subarray(0, read);
    }
    await this.#fillBody();
    return await this.some(lengthMax);
  }

  /** The first `length` bytes, which must be there; good until the next call. */
  take(length: number): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, length);
    const rest = this.#length - length;
    if (rest > 0) {
      const bytes = new Uint8Array(Math.max(rest, SMALL_BYTES));
      bytes.set(this.#bytes.subarray(length, this.#length));
      this.#bytes = bytes;
    } else if (this.#bytes.length > SMALL_BYTES) {
      // A long head made it large; the wait for the next one is long, too.
      this.#bytes = new Uint8Array(SMALL_BYTES);
    }
    this.#length = rest;
    this.#lines = 0;
    this.#lineStart = 0;
    return taken;
  }

  async #fillBody(): Promise<void> {
    this.#activity.enter("body");
    if (!await this.fill()) throw new Refusal(400, "half a body");
  }

  async #read(): Promise<boolean> {
    try {
      // Nothing is taken while this goes on: without bytes there is nothing to take.
      if (this.#length === this.#bytes.length) this.#grow();
      const read = await this.#socket.read(this.#bytes.subarray(this.#length));
      this.#checkNotStopped();
      this.#length += read ?? 0;
      return read !== null;
    } finally {
      this.#reading = undefined;
    }
  }

  #checkNotStopped(): void {
    if (this.#isStopped) throw new Error("Cannot read from a client that was turned away");
  }

  #grow(): void {
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, SMALL_BYTES));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }

  /** Some clients send an empty line behind a body (RFC 9112, 2.2). */
  #skipEmptyLines(): void {
    while (this.#length > 1 && this.#bytes[0] === CR && this.#bytes[1] === LF) {
      if (++this.#emptyLines > EMPTY_LINES_MAX) throw this.#refusal(400, "many empty lines");
      this.take(2);
    }
  }

  /** Goes on where the last look ended, so that a head in many pieces costs no more than one. */
  #endOfHead(): number {
    for (let at = this.#find(LF, this.#lineStart); at >= 0; at = this.#find(LF, at + 1)) {
      const end = lineEnd(this.#bytes, at);
      if (end === this.#lineStart && this.#lines > 0) return at + 1;
      this.#lines++;
      this.#lineStart = at + 1;
      if (this.#lines > HEAD_LINES_MAX) throw this.#refusal(431, "many headers");
    }
    if (this.#length >= HEAD_BYTES_MAX) {
      throw this.#refusal(this.#lines === 0 ? 414 : 431, "large head");
    }
    if (!this.isEmpty) this.#checkFirstLine();
    return 0;
  }

  #refusal(status: number, reason: string): Refusal {
    const begin = this.#bytes.subarray(0, Math.min(this.#length, METHOD_BYTES_MAX));
    return new Refusal(status, reason).in(DECODER.decode(begin));
  }

  /** What is no request is refused at once, not when it has gone on for long. */
  #checkFirstLine(): void {
    const mayBeEmptyLine = this.#length === 1 && this.#bytes[0] === CR;
    if (mayBeEmptyLine) return;
    const end = this.#find(LF, 0) + 1 || this.#length;
    const line = DECODER.decode(this.#bytes.subarray(0, end));
    if (!mayBeRequestLine(line)) throw new Refusal(400, "no request line of HTTP/1");
  }

  #find(byte: number, from: number): number {
    const at = this.#bytes.indexOf(byte, from);
    // Behind what came in lies what came in before.
    return at < this.#length ? at : -1;
  }
}

/** Where a line ends whose line feed is at `at`. */
function lineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at - 1] !== CR) throw new Refusal(400, "bare line feed");
  return at - 1;
}
