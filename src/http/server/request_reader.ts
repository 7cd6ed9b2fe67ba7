import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { Activity } from "./activity.ts";
import { Refusal } from "./refusal.ts";
import { mayBeRequestLine } from "./request_head.ts";

/** The part of a connection that the server uses. */
export type Socket = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close" | "remoteAddr">;

/** Nix sends heads of some 200 bytes. Ten thousand idle connections hold one of these each. */
const SMALL_BYTES = 1024;

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_LINES_MAX = 100;
const EMPTY_LINES_MAX = 8;

const TOO_LARGE =
  `has over ${HEAD_BYTES_MAX} bytes; expected at most ${HEAD_BYTES_MAX} for path and headers`;
const TOO_MANY_LINES =
  `the head has over ${HEAD_LINES_MAX} lines; expected at most ${HEAD_LINES_MAX}`;

/** Read size of a body. */
const BODY_BYTES = 64 * 1024;

/** Enough bytes for the method. */
const METHOD_BYTES_MAX = 20;

const CR = 13;
const LF = 10;

// A byte order mark is no part of a request line.
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads requests from a connection, and buffers the unused bytes. */
export class RequestReader {
  readonly #socket: Socket;
  readonly #activity: Activity;
  #bytes = new Uint8Array(SMALL_BYTES);
  #length = 0;
  #reading: Promise<boolean> | undefined;
  /** Number of whole lines of the arriving head, and the start of the next one. */
  #lines = 0;
  #lineStart = 0;
  /** Number of empty lines before the arriving head. */
  #emptyLines = 0;
  #isStopped = false;
  #failRead: ((reason: Failure) => void) | undefined;

  constructor(socket: Socket, activity: Activity) {
    this.#socket = socket;
    this.#activity = activity;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** True once `stop()` was called. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Fails every running read of a body at once, and all further reads. */
  stop(): void {
    this.#isStopped = true;
    this.#failRead?.(stalled());
  }

  /** Call it when the app has its bytes. */
  handedOver(): void {
    this.#activity.enter("answering");
  }

  /** Reads more bytes; false at the end of the connection. Throws if the connection broke. */
  fill(): Promise<boolean> {
    return this.#reading ??= this.#read();
  }

  /** The next head; `undefined` if the connection ended before its first byte. */
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
      throw this.#refusal(400, "incomplete head");
    }
  }

  /** A line of a body's framing, without its end. */
  async line(lengthMax: number): Promise<string> {
    for (let from = 0;;) {
      const end = this.#find(LF, from);
      // One byte more for the carriage return.
      if ((end < 0 ? this.#length : end) > lengthMax + 1) {
        throw new Refusal(400, "chunk line too long");
      }
      if (end >= 0) return DECODER.decode(this.take(lineEnd(this.#bytes, end) + 2)).slice(0, -2);
      from = this.#length;
      await this.#fillBody();
    }
  }

  /** Some bytes of a body, at most `lengthMax`. The caller owns the memory. */
  async some(lengthMax: number): Promise<Bytes> {
    this.#checkNotStopped();
    if (!this.isEmpty) return this.take(Math.min(lengthMax, this.#length)).slice();
    if (this.#reading === undefined) {
      const bytes = new Uint8Array(Math.min(lengthMax, BODY_BYTES));
      this.#activity.enter("body");
      const read = await this.#unlessStopped(this.#socket.read(bytes))
        .catch((error) => this.#brokenBy(error));
      if (read === null) throw new Refusal(400, "incomplete body");
      // A small piece must not hold the whole buffer.
      return read < bytes.length / 2 ? bytes.slice(0, read) : bytes.subarray(0, read);
    }
    await this.#fillBody();
    return await this.some(lengthMax);
  }

  /** The first `length` bytes, which must be there; valid until the next call. */
  take(length: number): Bytes {
    const taken = this.#bytes.subarray(0, length);
    const rest = this.#length - length;
    if (rest > 0) {
      const bytes = new Uint8Array(Math.max(rest, SMALL_BYTES));
      bytes.set(this.#bytes.subarray(length, this.#length));
      this.#bytes = bytes;
    } else if (this.#bytes.length > SMALL_BYTES) {
      // A long head made the buffer large; the wait for the next head may be long, too.
      this.#bytes = new Uint8Array(SMALL_BYTES);
    }
    this.#length = rest;
    this.#lines = 0;
    this.#lineStart = 0;
    return taken;
  }

  async #fillBody(): Promise<void> {
    this.#checkNotStopped();
    this.#activity.enter("body");
    const goesOn = await this.#unlessStopped(this.fill());
    if (!goesOn) throw new Refusal(400, "incomplete body");
  }

  async #read(): Promise<boolean> {
    try {
      // No `take()` moves the buffer during a read: there are no bytes to take.
      if (this.#length === this.#bytes.length) this.#grow();
      const read = await this.#socket.read(this.#bytes.subarray(this.#length));
      this.#checkNotStopped();
      this.#length += read ?? 0;
      return read !== null;
    } catch (error) {
      return this.#brokenBy(error);
    } finally {
      this.#reading = undefined;
    }
  }

  async #unlessStopped<Value>(reading: Promise<Value>): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    this.#failRead = reject;
    reading.then(resolve, reject);
    try {
      return await promise;
    } finally {
      this.#failRead = undefined;
      this.#checkNotStopped();
    }
  }

  #checkNotStopped(): void {
    if (this.#isStopped) throw stalled();
  }

  /** The server closes the connection of a client that it refused. */
  #brokenBy(error: unknown): never {
    this.#checkNotStopped();
    throw error;
  }

  #grow(): void {
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, SMALL_BYTES));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }

  /** Skips empty lines, which some clients send after a body (RFC 9112, 2.2). */
  #skipEmptyLines(): void {
    while (this.#length > 1 && this.#bytes[0] === CR && this.#bytes[1] === LF) {
      if (++this.#emptyLines > EMPTY_LINES_MAX) throw this.#refusal(400, "too many empty lines");
      this.take(2);
    }
  }

  /**
   * The length of the head, or 0 if it is incomplete. Continues at the last call's position, so
   * many small pieces cost no more than one.
   */
  #endOfHead(): number {
    for (let at = this.#find(LF, this.#lineStart); at >= 0; at = this.#find(LF, at + 1)) {
      const end = lineEnd(this.#bytes, at);
      if (end === this.#lineStart && this.#lines > 0) return at + 1;
      this.#lines++;
      this.#lineStart = at + 1;
      if (this.#lines > HEAD_LINES_MAX) {
        throw this.#refusal(431, "too many headers", TOO_MANY_LINES);
      }
    }
    if (this.#length >= HEAD_BYTES_MAX) {
      const isLine = this.#lines === 0;
      const what = isLine ? "request line" : "head";
      throw this.#refusal(isLine ? 414 : 431, "head too large", `the ${what} ${TOO_LARGE}`);
    }
    if (!this.isEmpty) this.#checkFirstLine();
    return 0;
  }

  #refusal(status: number, reason: string, expected?: string): Refusal {
    const begin = this.#bytes.subarray(0, Math.min(this.#length, METHOD_BYTES_MAX));
    return new Refusal(status, reason, expected).in(DECODER.decode(begin));
  }

  /** Refuses a bad request line as soon as it is bad. */
  #checkFirstLine(): void {
    const mayBeEmptyLine = this.#length === 1 && this.#bytes[0] === CR;
    if (mayBeEmptyLine) return;
    const end = this.#find(LF, 0) + 1 || this.#length;
    const line = DECODER.decode(this.#bytes.subarray(0, end));
    if (!mayBeRequestLine(line)) throw new Refusal(400, "invalid request line");
  }

  #find(byte: number, from: number): number {
    const at = this.#bytes.indexOf(byte, from);
    // Behind `#length` lie old bytes.
    return at < this.#length ? at : -1;
  }
}

function stalled(): Failure {
  return new Failure("stalled", "Cannot read on: the client stopped sending");
}

/** The end of the line whose line feed is at `at`. */
function lineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at - 1] !== CR) throw new Refusal(400, "bare line feed");
  return at - 1;
}
