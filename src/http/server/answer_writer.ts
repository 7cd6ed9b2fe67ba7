import type { Bytes } from "../../base/bytes.ts";
import type { Activity } from "./activity.ts";
import { BufferPool } from "./buffer_pool.ts";
import type { Socket } from "./request_reader.ts";

/** Head and body up to this size leave in one write. */
const TOGETHER_BYTES_MAX = 64 * 1024;
const TOGETHER = new BufferPool(TOGETHER_BYTES_MAX, 32);

/** Reserved for a head. */
const HEAD_BYTES_MAX = 4 * 1024;

/** Size of the write that waits for a client that does not read. */
const SMALL_WRITE_BYTES = 16 * 1024;

/** Memory for larger writes. */
const LARGE_BYTES_MAX = 32 * 1024 * 1024;

const ENCODER = new TextEncoder();

/** The client closed the connection, or was refused. */
export class ClientLeft extends Error {
  override readonly name = "ClientLeft";
}

/** Writes the bytes of answers, and reports progress to `Activity`. */
export class AnswerWriter {
  readonly #socket: Pick<Socket, "write">;
  readonly #activity: Activity;
  readonly #running: RunningWrites;
  #isEnded = false;
  #writing: Uint8Array | undefined;
  /** The bytes that wait behind the running write. */
  #waiting: Uint8Array | undefined;
  #stopWaiting: ((reason: ClientLeft) => void) | undefined;

  constructor(socket: Pick<Socket, "write">, activity: Activity, running: RunningWrites) {
    this.#socket = socket;
    this.#activity = activity;
    this.#running = running;
  }

  /** Memory of the running write, and of the bytes behind it. */
  get heldBytes(): number {
    return (this.#writing?.buffer.byteLength ?? 0) + (this.#waiting?.buffer.byteLength ?? 0);
  }

  /** True if a large write must go out in small ones now. */
  get savesMemory(): boolean {
    return this.#running.areLarge;
  }

  /** Finishes the running write, and fails further ones. */
  end(): void {
    this.#isEnded = true;
  }

  /** Like `end`, and lets go of the bytes that wait: a write may outlive its connection. */
  close(): void {
    this.#isEnded = true;
    this.#stopWaiting?.(new ClientLeft("Cannot write to a client: its connection is closed"));
  }

  /** Resolves when the kernel has all bytes; else throws a ClientLeft. */
  async bytes(bytes: Uint8Array): Promise<void> {
    let written = await this.some(bytes);
    while (written < bytes.length) {
      written += await this.#fromCopy(bytes.subarray(written));
      if (written < bytes.length) written += await this.some(bytes.subarray(written));
    }
  }

  /**
   * Writes as much as the kernel takes at once, and returns the byte count. Throws a ClientLeft.
   */
  some(bytes: Uint8Array): Promise<number> {
    return this.savesMemory && isLarge(bytes) ? this.#fromCopy(bytes) : this.#write(bytes);
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

  /** Writes a text behind its head, and returns its byte count. May call `headOf` twice. */
  async text(text: string, headOf: (byteLength: number) => string): Promise<number> {
    // A character has at most three bytes.
    if (3 * text.length > TOGETHER_BYTES_MAX - HEAD_BYTES_MAX) {
      const bytes = ENCODER.encode(text);
      await this.together(headOf(bytes.length), bytes);
      return bytes.length;
    }
    const buffer = TOGETHER.take();
    try {
      // Nearly all texts are ASCII: as many bytes as characters.
      let byteLength = text.length;
      let bytes = encodedInto(buffer, headOf(byteLength) + text);
      if (bytes.surplus > 0) {
        byteLength += bytes.surplus;
        bytes = encodedInto(buffer, headOf(byteLength) + text);
      }
      const written = await this.some(buffer.subarray(0, bytes.written));
      // The kernel seldom leaves a rest of a small answer.
      if (written < bytes.written) await this.bytes(buffer.subarray(written, bytes.written));
      return byteLength;
    } finally {
      TOGETHER.give(buffer);
    }
  }

  /** Writes a text and the bytes behind it, in one write if they are small. */
  async together(text: string, body?: Uint8Array): Promise<void> {
    const bodyBytes = body?.length ?? 0;
    // A character has at most three bytes.
    if (3 * text.length + bodyBytes > TOGETHER_BYTES_MAX) {
      await this.bytes(ENCODER.encode(text));
      return body && await this.bytes(body);
    }
    const buffer = TOGETHER.take();
    try {
      const { written } = ENCODER.encodeInto(text, buffer);
      if (body !== undefined) buffer.set(body, written);
      await this.bytes(buffer.subarray(0, written + bodyBytes));
    } finally {
      TOGETHER.give(buffer);
    }
  }
}

/** The byte count, and its surplus over the characters. Throws if the buffer is too small. */
function encodedInto(buffer: Bytes, text: string) {
  const { read, written } = ENCODER.encodeInto(text, buffer);
  if (read < text.length) throw new Error("Cannot send an answer: its head is too large");
  return { written, surplus: written - read };
}

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
