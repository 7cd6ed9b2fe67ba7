import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import type { Bytes } from "../../base/bytes.ts";
import { type BufferLender, type ByteSource, DirectStream } from "../../base/direct_stream.ts";
import { clock } from "../../runtime/current.ts";
import { type Answer, statusAnswer } from "../message/message.ts";
import type { Activity } from "./connection.ts";
import type { Socket } from "./request_reader.ts";

/** What the head of an answer says of its connection. */
export interface Sending {
  readonly isHead: boolean;
  readonly keepsAlive: boolean;
  /** True for HTTP/1.0. */
  readonly isOld: boolean;
  /** Date in HTTP's format. */
  readonly date: string;
}

/** Follows an answer on its way. */
export interface Progress {
  sent(byteLength: number): void;
  /** Called with each time in which a running body had nothing to send. */
  waited(fromMs: number, toMs: number): void;
}

/** Of a body: its length, if that is known. */
type Framing = number | "chunked" | "none";

/** Head and body up to this size leave in one write. */
const TOGETHER_BYTES_MAX = 64 * 1024;

/** Reserved for a head. */
const HEAD_BYTES_MAX = 4 * 1024;

/** Size of the write that waits for a client that does not read. */
const SMALL_WRITE_BYTES = 16 * 1024;

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([code, phrase]) => [
    Number(code),
    `HTTP/1.1 ${code} ${phrase}\r\n`,
  ]),
);

/** Bodies may be untrusted text: browsers must not guess their type. */
const NO_SNIFFING = "x-content-type-options: nosniff\r\n";

const ENCODER = new TextEncoder();

/** The client closed the connection, or was refused. */
export class ClientLeft extends Error {
  override readonly name = "ClientLeft";
}

/** The body is not the announced one. Its connection must not look complete. */
class BrokenBody extends Error {
  override readonly name = "BrokenBody";
}

/** Sends the answers of one connection, and reports progress to `Activity`. */
export class AnswerWriter {
  readonly #socket: Pick<Socket, "write">;
  readonly #activity: Activity;
  readonly #running: RunningWrites;
  #isEnded = false;
  /** Reader of the running body. */
  #reader: BodyReader | undefined;
  #writing: Uint8Array | undefined;
  /** The bytes that wait behind the running write. */
  #waiting: Uint8Array | undefined;
  #stopWaiting: ((reason: ClientLeft) => void) | undefined;

  constructor(socket: Pick<Socket, "write">, activity: Activity, running: RunningWrites) {
    this.#socket = socket;
    this.#activity = activity;
    this.#running = running;
  }

  /** Memory of the running write, of the bytes behind it, and of those that its body holds. */
  get unsentBytes(): number {
    return (this.#writing?.buffer.byteLength ?? 0) + (this.#waiting?.buffer.byteLength ?? 0) +
      (this.#reader?.heldBytes ?? 0);
  }

  /** Frees buffers while the client stalls. */
  shed(): void {
    this.#reader?.shed();
  }

  /** Finishes the running write, and fails further ones. */
  end(): void {
    this.#isEnded = true;
  }

  /** Like `end`, and lets go of the bytes that wait: a write may outlive its connection. */
  close(): void {
    this.#isEnded = true;
    this.#stopWaiting?.(new ClientLeft("Cannot write to a client: its connection is closed"));
    this.#reader?.cancel();
  }

  /** Tells a client that waits for it to send its body. */
  async sendContinue(): Promise<void> {
    await this.#together("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /** Sends an answer. Throws if the client left, or the body is not as announced. */
  async send(answer: Answer, sending: Sending, progress?: Progress): Promise<void> {
    const { body, headers } = answer;
    if (sending.isHead || body === null) {
      if (body instanceof ReadableStream) await body.cancel();
      const framing = framingWithoutBody(answer, sending.isHead);
      return await this.#together(headOf(answer, sending, framing));
    }
    const announced = headers.get("content-length");
    const length = announced === null ? undefined : Number(announced);
    if (body instanceof ReadableStream) {
      using reader = new BodyReader(body);
      // Without chunks a client could not tell this body's end from a break.
      if (length === undefined && sending.isOld) {
        return await this.send(unframedAnswer(answer), sending, progress);
      }
      this.#reader = reader;
      try {
        await this.#together(headOf(answer, sending, length ?? "chunked"));
        if (length === undefined) return await this.#sendChunks(reader, progress);
        return await this.#sendLength(reader, length, progress);
      } finally {
        this.#reader = undefined;
      }
    }
    if (typeof body === "string" && length === undefined) {
      const byteLength = await this.#sendText(answer, body, sending);
      return progress?.sent(byteLength);
    }
    const bytes = typeof body === "string" ? ENCODER.encode(body) : body;
    if (length !== undefined && length !== bytes.length) throw new BrokenBody("another length");
    await this.#together(headOf(answer, sending, bytes.length), bytes);
    progress?.sent(bytes.length);
  }

  /** Writes a text behind its head, and returns its byte count. */
  async #sendText(answer: Answer, text: string, sending: Sending): Promise<number> {
    // A character has at most three bytes.
    if (3 * text.length > TOGETHER_BYTES_MAX - HEAD_BYTES_MAX) {
      const bytes = ENCODER.encode(text);
      await this.#together(headOf(answer, sending, bytes.length), bytes);
      return bytes.length;
    }
    const buffer = TOGETHER.take();
    try {
      // Nearly all texts are ASCII: as many bytes as characters.
      let byteLength = text.length;
      let bytes = encodedInto(buffer, headOf(answer, sending, byteLength) + text);
      if (bytes.surplus > 0) {
        byteLength += bytes.surplus;
        bytes = encodedInto(buffer, headOf(answer, sending, byteLength) + text);
      }
      const written = await this.#some(buffer.subarray(0, bytes.written));
      // The kernel seldom leaves a rest of a small answer.
      if (written < bytes.written) await this.#bytes(buffer.subarray(written, bytes.written));
      return byteLength;
    } finally {
      TOGETHER.give(buffer);
    }
  }

  async #sendChunks(reader: BodyReader, progress: Progress | undefined): Promise<void> {
    for (;;) {
      const length = await this.#nextOf(reader, progress);
      if (length === 0) return await this.#together("0\r\n\r\n");
      await this.#together(`${length.toString(16)}\r\n`);
      await this.#bytes(reader.piece);
      await this.#together("\r\n");
      progress?.sent(length);
    }
  }

  async #sendLength(
    reader: BodyReader,
    length: number,
    progress: Progress | undefined,
  ): Promise<void> {
    // This frame waits as long as the client, so it must not refer to a piece.
    const write = (bytes: Uint8Array) => this.#some(bytes);
    for (let left = length;;) {
      const pieceLength = await this.#nextOf(reader, progress);
      if (pieceLength > left) throw new BrokenBody("longer than announced");
      if (pieceLength === 0 && left > 0) throw new BrokenBody("shorter than announced");
      if (pieceLength === 0) return;
      while (reader.piece.length > 0) {
        const written = await reader.write(write, this.#running.areLarge);
        left -= written;
        progress?.sent(written);
      }
    }
  }

  /** The length of the next piece; 0 at the end. */
  async #nextOf(reader: BodyReader, progress: Progress | undefined): Promise<number> {
    // The client is not stalled while there is nothing to send.
    this.#activity.enter("answering");
    const fromMs = clock.nowMs();
    const length = await reader.next();
    progress?.waited(fromMs, clock.nowMs());
    return length;
  }

  /** Writes a text and the bytes behind it, in one write if they are small. */
  async #together(text: string, body?: Uint8Array): Promise<void> {
    const bodyBytes = body?.length ?? 0;
    // A character has at most three bytes.
    if (3 * text.length + bodyBytes > TOGETHER_BYTES_MAX) {
      await this.#bytes(ENCODER.encode(text));
      return body && await this.#bytes(body);
    }
    const buffer = TOGETHER.take();
    try {
      const { written } = ENCODER.encodeInto(text, buffer);
      if (body !== undefined) buffer.set(body, written);
      await this.#bytes(buffer.subarray(0, written + bodyBytes));
    } finally {
      TOGETHER.give(buffer);
    }
  }

  /** Resolves when the kernel has all bytes; else throws a ClientLeft. */
  async #bytes(bytes: Uint8Array): Promise<void> {
    let written = await this.#some(bytes);
    while (written < bytes.length) {
      written += await this.#fromCopy(bytes.subarray(written));
      if (written < bytes.length) written += await this.#some(bytes.subarray(written));
    }
  }

  /** Writes as much as the kernel takes at once, and returns the byte count. */
  #some(bytes: Uint8Array): Promise<number> {
    return this.#running.areLarge && isLarge(bytes) ? this.#fromCopy(bytes) : this.#write(bytes);
  }

  /** Writes a small copy, so that the runtime does not hold all bytes until the client reads. */
  async #fromCopy(bytes: Uint8Array): Promise<number> {
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    this.#stopWaiting = reject;
    this.#waiting = bytes;
    this.#running.beginWaiting(bytes);
    const copy = bytes.slice(0, SMALL_WRITE_BYTES);
    try {
      for (let written = 0; written < copy.length;) {
        written += await Promise.race([this.#write(copy.subarray(written)), stopped]);
      }
      return copy.length;
    } finally {
      this.#waiting = undefined;
      this.#running.endWaiting(bytes);
      this.#stopWaiting = undefined;
    }
  }

  async #write(bytes: Uint8Array): Promise<number> {
    if (this.#isEnded) throw new ClientLeft("Cannot write to a client that was refused");
    this.#activity.enter("sending");
    this.#writing = bytes;
    this.#running.begin(bytes);
    try {
      return await this.#socket.write(bytes);
    } catch (cause) {
      throw new ClientLeft("Cannot write to a client", { cause });
    } finally {
      this.#writing = undefined;
      this.#running.end(bytes);
    }
  }
}

/** The framing that GET would have: chunks, if its length is unknown. */
function framingWithoutBody({ status, body }: Answer, isHead: boolean): Framing {
  if (status === 204 || status === 304) return "none";
  if (typeof body === "string") return Buffer.byteLength(body);
  if (body instanceof Uint8Array) return body.length;
  return isHead ? "chunked" : 0;
}

/** 404, so that an HTTP/1.0 client tries its next cache: it cannot read chunks. */
function unframedAnswer({ headers }: Answer): Answer {
  const kept = ["x-cache", "x-request-id"].flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  return statusAnswer(404, false, Object.fromEntries(kept));
}

/** The head of an answer, with its empty line. `framing`: of a body without a Content-Length. */
function headOf({ status, headers }: Answer, sending: Sending, framing: Framing): string {
  const { keepsAlive, isOld, date } = sending;
  let text = STATUS_LINES.get(status) ?? `HTTP/1.1 ${status} \r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  if (!headers.has("content-length")) text += framingField(framing);
  if (!keepsAlive) text += "connection: close\r\n";
  // HTTP/1.0: a connection stays open only if the head says so.
  else if (isOld) text += "connection: keep-alive\r\n";
  return `${text}${NO_SNIFFING}date: ${date}\r\n\r\n`;
}

function framingField(framing: Framing): string {
  if (framing === "none") return "";
  return framing === "chunked"
    ? "transfer-encoding: chunked\r\n"
    : `content-length: ${framing}\r\n`;
}

/** The byte count, and its surplus over the characters. Throws if the buffer is too small. */
function encodedInto(buffer: Bytes, text: string) {
  const { read, written } = ENCODER.encodeInto(text, buffer);
  if (read < text.length) throw new Error("Cannot send an answer: its head is too large");
  return { written, surplus: written - read };
}

/** Memory for large writes. */
const LARGE_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Counts the memory that the runtime holds for running writes, also those of closed connections. On
 * Deno 2.6 a write outlives its connection until the client leaves. Counts also the bytes that wait
 * behind small writes.
 */
export class RunningWrites {
  readonly #largeBytesMax: number;
  #largeBytes = 0;
  #waitingBytes = 0;

  constructor(largeBytesMax = LARGE_BYTES_MAX) {
    this.#largeBytesMax = largeBytesMax;
  }

  /** True while there is no memory for another large write. */
  get areLarge(): boolean {
    return this.#largeBytes >= this.#largeBytesMax;
  }

  /** True while clients hold so much that no answer must add a large copy of its own. */
  get holdMuch(): boolean {
    return this.#largeBytes + this.#waitingBytes >= this.#largeBytesMax;
  }

  begin(bytes: Uint8Array): void {
    if (isLarge(bytes)) this.#largeBytes += bytes.buffer.byteLength;
  }

  end(bytes: Uint8Array): void {
    if (isLarge(bytes)) this.#largeBytes -= bytes.buffer.byteLength;
  }

  beginWaiting({ buffer }: Uint8Array): void {
    this.#waitingBytes += buffer.byteLength;
  }

  endWaiting({ buffer }: Uint8Array): void {
    this.#waitingBytes -= buffer.byteLength;
  }
}

/** True if a write of these bytes holds more than a small one. */
function isLarge({ buffer }: Uint8Array): boolean {
  return buffer.byteLength > SMALL_WRITE_BYTES;
}

/** A pool of buffers of one size, which spares the garbage collector. */
class BufferPool {
  readonly #byteLength: number;
  readonly #keptMax: number;
  readonly #kept: Bytes[] = [];
  #lentCount = 0;

  constructor(byteLength: number, keptMax: number) {
    this.#byteLength = byteLength;
    this.#keptMax = keptMax;
  }

  take(): Bytes {
    this.#lentCount++;
    return this.#kept.pop() ?? new Uint8Array(this.#byteLength);
  }

  /** Like `take`; `undefined` when `keptMax` buffers are lent. */
  takeKept(): Bytes | undefined {
    return this.#lentCount < this.#keptMax ? this.take() : undefined;
  }

  /** Takes back a buffer that nobody reads or writes any more. */
  give(buffer: Bytes): void {
    this.#lentCount--;
    if (this.#kept.length < this.#keptMax) this.#kept.push(buffer);
  }

  /** Writes off a lent buffer into which another thread may still write. */
  writeOff(): void {
    this.#lentCount--;
  }
}

/** Read size of large bodies. Measured: 64 KiB is half as fast, 1 MiB no faster. */
const READ_BYTES = 256 * 1024;

/** Read size for stalled clients, and while all large buffers are in use. */
const SMALL_READ_BYTES = 16 * 1024;

/** The buffers of all connections. */
const TOGETHER = new BufferPool(TOGETHER_BYTES_MAX, 32);
const READS = new BufferPool(READ_BYTES, 64);
const SMALL_READS = new BufferPool(SMALL_READ_BYTES, 64);

const NO_BYTES: Bytes = new Uint8Array(0);

/**
 * Reads a body piece by piece, from its source into one buffer where possible. Only the reader
 * refers to the piece, so it can free the buffer of a stalled client.
 */
export class BodyReader implements Disposable {
  readonly #source: ByteSource | undefined;
  readonly #reader: ReadableStreamDefaultReader<Bytes> | undefined;
  #buffer: Bytes | undefined;
  #piece = NO_BYTES;
  /** True while `shed()` may free the rest of the piece. */
  #isWaiting = false;
  #isReading = false;
  #isOver = false;

  constructor(stream: ReadableStream<Bytes>) {
    if (stream instanceof DirectStream) this.#source = stream.source;
    else this.#reader = stream.getReader();
  }

  /** The unwritten rest of the last piece. */
  get piece(): Bytes {
    return this.#piece;
  }

  /** Memory that `shed()` cannot free. */
  get heldBytes(): number {
    return this.#source?.heldBytes ?? 0;
  }

  /** Reads the next piece and returns its length; 0 at the end. Throws the stream's error. */
  async next(): Promise<number> {
    this.#piece = NO_BYTES;
    this.#piece =
      await (this.#source === undefined ? this.#pieceOf(this.#reader) : this.#read(this.#source));
    if (this.#piece.length === 0) this.#isOver = true;
    return this.#piece.length;
  }

  /**
   * Writes from the piece and returns the byte count. The next piece may repeat the rest.
   * `savesMemory`: at once from a small copy.
   */
  async write(write: (bytes: Bytes) => Promise<number>, savesMemory: boolean): Promise<number> {
    const isLarge = this.#buffer?.length === READ_BYTES;
    if (isLarge && savesMemory) return await this.#writeCopy(write);
    const written = await write(this.#piece);
    this.#piece = this.#piece.subarray(written);
    if (this.#piece.length === 0 || !isLarge) return written;
    return written + await this.#writeCopy(write);
  }

  /** A slow client waits for a small copy, so that `shed()` can free the large buffer. */
  async #writeCopy(write: (bytes: Bytes) => Promise<number>): Promise<number> {
    const buffer = SMALL_READS.take();
    const length = Math.min(buffer.length, this.#piece.length);
    buffer.set(this.#piece.subarray(0, length));
    this.#piece = this.#piece.subarray(length);
    this.#isWaiting = true;
    try {
      for (let written = 0; written < length;) {
        written += await write(buffer.subarray(written, length));
      }
    } finally {
      this.#isWaiting = false;
    }
    SMALL_READS.give(buffer);
    return length;
  }

  /** Frees the buffer while its client stalls. The next piece repeats the unwritten rest. */
  shed(): void {
    if (!this.#isWaiting || this.#isOver || this.#source === undefined) return;
    if (this.#piece.length > 0) this.#source.rewind(this.#piece.length);
    this.#giveBuffer();
  }

  /** Ends a running read early. */
  cancel(): void {
    this.#isOver = true;
    this.#source?.close();
    // The client is gone: nobody needs the error of a stream's end.
    this.#reader?.cancel().catch(() => undefined);
  }

  [Symbol.dispose](): void {
    if (!this.#isOver) this.cancel();
    this.#source?.close();
    this.#giveBuffer();
  }

  #giveBuffer(): void {
    if (this.#buffer !== undefined) {
      const pool = this.#buffer.length === READ_BYTES ? READS : SMALL_READS;
      // Another thread may still write into the buffer of an unfinished read.
      if (this.#isReading) pool.writeOff();
      else pool.give(this.#buffer);
    }
    this.#buffer = undefined;
    this.#piece = NO_BYTES;
  }

  async #read(source: ByteSource): Promise<Bytes> {
    if (this.#isOver) return NO_BYTES;
    const reading = source.read(this.#lend);
    // It waits for bytes.
    if (!this.#isReading) this.#giveBuffer();
    const length = await reading;
    this.#isReading = false;
    return this.#buffer?.subarray(0, length) ?? NO_BYTES;
  }

  readonly #lend: BufferLender = () => {
    if (this.#buffer?.length !== READ_BYTES) this.#giveBuffer();
    this.#isReading = true;
    return this.#buffer ??= READS.takeKept() ?? SMALL_READS.take();
  };

  async #pieceOf(reader: ReadableStreamDefaultReader<Bytes> | undefined): Promise<Bytes> {
    for (;;) {
      const { done, value } = await reader?.read() ?? { done: true };
      if (done) return NO_BYTES;
      // A chunk without bytes would end the body.
      if (value !== undefined && value.length > 0) return value;
    }
  }
}
