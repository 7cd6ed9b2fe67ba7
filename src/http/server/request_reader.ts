import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { streamFrom } from "../../base/stream_of.ts";
import { type ClientRequest, fieldWords, lowerAscii, withoutBlanks } from "../message/message.ts";
import type { Activity } from "./connection.ts";

/** The part of a connection that the server uses. */
export type Socket = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close" | "remoteAddr">;

/** A request without its body. */
export interface RequestHead {
  readonly method: string;
  /** Like `ClientRequest.url`. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** Bytes of the body. */
  readonly bodyLength: number | "chunked";
  /** True when the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** False: the connection ends with the answer. */
  readonly keepsAlive: boolean;
  /** HTTP/1.0 has no chunks, and closes connections unless the head says otherwise. */
  readonly isOld: boolean;
}

/** A request that the server refuses by itself. */
export interface RefusedRequest {
  readonly status: number;
  /** A reason from a closed set, for the log, such as "bare line feed". */
  readonly reason: string;
  /** What was given and what is expected, for the client; `undefined`: the status says enough. */
  readonly expected?: string | undefined;
  /** The method, where the head is incomplete. */
  readonly method: string | undefined;
  /** The client, as `peerAddress` returns it. */
  readonly peer: string;
  /** The request with the bad body, if the app has it and answers it. */
  readonly request: ClientRequest | undefined;
}

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

  /**
   * The next head; `undefined` if the connection ended before its first byte. Throws a Refusal that
   * has the method.
   */
  async head(): Promise<RequestHead | undefined> {
    this.#emptyLines = 0;
    for (let phase: "idle" | "head" | undefined;;) {
      this.#skipEmptyLines();
      const wasEmpty = this.isEmpty;
      const next = wasEmpty ? "idle" : "head";
      if (next !== phase) this.#activity.enter(phase = next);
      const end = this.#endOfHead();
      if (end > 0) return headIn(DECODER.decode(this.take(end)));
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

const CHUNK_LINE_REGEXP = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t -~]*)?$/;
const CHUNK_LINE_LENGTH_MAX = 256;
const TRAILER_LENGTH_MAX = 1024;
const TRAILERS_MAX = 16;

/** The body of a request, read from the connection on demand. */
export class RequestBody {
  readonly #requestReader: RequestReader;
  readonly #isChunked: boolean;
  /** Called before the first read, for clients that wait for 100 Continue. */
  readonly #begin: () => Promise<void>;
  /** Bytes left of the body, or of the present chunk. */
  #left: number;
  #isOver: boolean;
  #hasBegun = false;

  constructor(
    requestReader: RequestReader,
    length: number | "chunked",
    begin: () => Promise<void>,
  ) {
    this.#requestReader = requestReader;
    this.#isChunked = length === "chunked";
    this.#left = length === "chunked" ? 0 : length;
    this.#isOver = length === 0;
    this.#begin = begin;
  }

  /** True if the connection's next byte is behind this body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True once the app has read from it. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Discards the rest, up to `bytesMax`; false if there is more. */
  async skip(bytesMax: number): Promise<boolean> {
    for (let skipped = 0; !this.#isOver && skipped <= bytesMax;) {
      skipped += (await this.read())?.length ?? 0;
    }
    return this.#isOver;
  }

  /** The next bytes; `undefined` at the end. Throws a Refusal for bad framing. */
  async read(): Promise<Bytes | undefined> {
    if (this.#isOver) return undefined;
    if (!this.#hasBegun) await this.#begin();
    this.#hasBegun = true;
    if (this.#left === 0 && !await this.#nextChunk()) return undefined;
    const bytes = await this.#requestReader.some(this.#left);
    this.#left -= bytes.length;
    if (this.#left === 0) await this.#endOfPart();
    return bytes;
  }

  stream(): ReadableStream<Bytes> {
    return streamFrom({
      next: async () => {
        const bytes = await this.read();
        // From here on the client waits for the app, not the app for the client.
        this.#requestReader.handedOver();
        return bytes;
      },
    });
  }

  async #endOfPart(): Promise<void> {
    if (!this.#isChunked) this.#isOver = true;
    else if (await this.#requestReader.line(0) !== "") {
      throw new Refusal(400, "chunk longer than its size");
    }
  }

  /** False after the last chunk. */
  async #nextChunk(): Promise<boolean> {
    const line = await this.#requestReader.line(CHUNK_LINE_LENGTH_MAX);
    const [, size] = CHUNK_LINE_REGEXP.exec(line) ?? [];
    if (size === undefined) throw new Refusal(400, "invalid chunk size");
    this.#left = parseInt(size, 16);
    if (this.#left > 0) return true;
    await this.#skipTrailers();
    this.#isOver = true;
    return false;
  }

  /** Discards trailers. Another server could read a malformed one as the next request. */
  async #skipTrailers(): Promise<void> {
    for (let count = 0;; count++) {
      const line = await this.#requestReader.line(TRAILER_LENGTH_MAX);
      if (line === "") return;
      if (!isField(line)) throw new Refusal(400, "malformed trailer");
      if (count >= TRAILERS_MAX) throw new Refusal(400, "too many trailers");
    }
  }
}

const REQUEST_LINE_REGEXP = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP\/1\.[01]$/;
const URL_REGEXP = /^https?:\/\/[^/?#]+(?:\/|$)/;
/** A value has no control characters. A folded line, or a space before the colon, is no field. */
const FIELD_REGEXP = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\u0080-\uffff]*$/;
const HOST_CHARS_REGEXP = /^[A-Za-z0-9._~:[\]%-]*$/;
const LENGTH_REGEXP = /^\d{1,15}$/;

function headIn(text: string): RequestHead {
  try {
    return parseRequestHead(text);
  } catch (error) {
    throw error instanceof Refusal ? error.in(text) : error;
  }
}

/**
 * Parses a head with its empty line. Throws a Refusal for all that two servers could read
 * differently: that is how requests are smuggled (RFC 9112, 11.2).
 */
export function parseRequestHead(text: string): RequestHead {
  const firstEnd = text.indexOf("\r\n");
  const line = text.slice(0, firstEnd);
  if (!REQUEST_LINE_REGEXP.test(line)) throw new Refusal(400, "invalid request line");
  const methodEnd = line.indexOf(" ");
  const method = line.slice(0, methodEnd);
  const target = line.slice(methodEnd + 1, -" HTTP/1.1".length);
  const isPath = target.startsWith("/");
  if (!isPath && !URL_REGEXP.test(target)) throw new Refusal(400, "invalid request target");
  const fields = new HeaderFields();
  const emptyLine = text.length - 2;
  for (let at = firstEnd + 2; at < emptyLine;) {
    const end = text.indexOf("\r\n", at);
    fields.add(text.slice(at, end));
    at = end + 2;
  }
  const host = fields.get("host");
  const isOld = line.endsWith("0");
  if (host === null ? !isOld : !HOST_CHARS_REGEXP.test(host)) {
    throw new Refusal(400, "invalid host");
  }
  return {
    method,
    url: isPath ? target : pathOfUrl(target),
    headers: fields,
    bodyLength: bodyLengthOf(method, fields, isOld),
    expectsContinue: expectsContinue(fields, isOld),
    keepsAlive: keepsAlive(fields.get("connection"), isOld),
    isOld,
  };
}

/** The path of an absolute URL, which clients send to proxies. */
function pathOfUrl(target: string): string {
  const path = target.indexOf("/", target.indexOf("://") + 3);
  return path < 0 ? "/" : target.slice(path);
}

/** True if this beginning of a first line may become a valid request line. */
function mayBeRequestLine(line: string): boolean {
  if (line.endsWith("\r\n")) return REQUEST_LINE_REGEXP.test(line.slice(0, -2));
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]*(?: [!-~]*(?: [HTP/1.0]*\r?)?)?$/.test(line);
}

/** True for a line that is a header or trailer field. */
function isField(line: string): boolean {
  return FIELD_REGEXP.test(line);
}

class HeaderFields implements RequestHeaders {
  readonly #values = new Map<string, string>();

  add(line: string): void {
    if (!isField(line)) throw new Refusal(400, "malformed header");
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = withoutBlanks(line, colon + 1);
    const before = this.#values.get(name);
    this.#values.set(name, before === undefined ? value : `${before}, ${value}`);
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }
}

function bodyLengthOf(
  method: string,
  fields: RequestHeaders,
  isOld: boolean,
): RequestHead["bodyLength"] {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding === null && length === null) return 0;
  if (coding !== null) {
    if (length !== null) throw new Refusal(400, "conflicting body lengths");
    if (isOld || lowerAscii(coding) !== "chunked") {
      throw new Refusal(400, "unknown transfer coding");
    }
  } else if (/^\d{16,}$/.test(length ?? "")) {
    throw new Refusal(413, "body too large");
  } else if (!LENGTH_REGEXP.test(length ?? "")) {
    throw new Refusal(400, "invalid content length");
  }
  const bodyLength = coding === null ? Number(length) : "chunked";
  if (bodyLength !== 0 && (method === "GET" || method === "HEAD")) {
    throw new Refusal(400, "unexpected body");
  }
  return bodyLength;
}

function expectsContinue(fields: RequestHeaders, isOld: boolean): boolean {
  const expected = fields.get("expect");
  if (expected === null || isOld) return false;
  if (lowerAscii(expected) !== "100-continue") throw new Refusal(417, "unknown expectation");
  return true;
}

function keepsAlive(connection: string | null, isOld: boolean): boolean {
  if (connection === null) return !isOld;
  const options = fieldWords(connection);
  return isOld ? options.includes("keep-alive") : !options.includes("close");
}

const METHOD_REGEXP = /^[A-Z]{3,16}(?= )/;

/** A request that the app never answers, and that ends its connection. */
export class Refusal extends Failure {
  readonly status: number;

  /** A reason from a closed set, for the log, such as "bare line feed". */
  readonly reason: string;

  /** What was given and what is expected, for the client. */
  readonly expected: string | undefined;

  /** The method, if the server could read it. */
  readonly method: string | undefined;

  constructor(status: number, reason: string, expected?: string, method?: string) {
    super("bad-request", `Cannot read request: ${reason}`);
    this.reason = reason;
    this.expected = expected;
    this.status = status;
    this.method = method;
  }

  /** The same refusal with the method at the beginning of `head`. */
  in(head: string): Refusal {
    return new Refusal(this.status, this.reason, this.expected, METHOD_REGEXP.exec(head)?.[0]);
  }
}
