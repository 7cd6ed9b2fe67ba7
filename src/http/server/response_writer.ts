import type { Activity } from "./activity.ts";
import { BufferPool } from "./buffer_pool.ts";
import type { Socket } from "./request_reader.ts";

/** Head and body of an answer up to this size leave in one write (and one packet, or a few). */
const TOGETHER_BYTES_MAX = 64 * 1024;
const TOGETHER = new BufferPool(TOGETHER_BYTES_MAX, 32);

/** Left for a head. */
const HEAD_BYTES_MAX = 4 * 1024;

const ENCODER = new TextEncoder();

/** Thrown for a connection that takes nothing more. */
export class ClientLeft extends Error {
  override readonly name = "ClientLeft";
}

/** Where the bytes for a client go; knows how long the client lets them lie. */
export class ResponseWriter {
  readonly #socket: Socket;
  readonly #activity: Activity;
  #isEnded = false;
  #writing: Uint8Array | undefined;

  constructor(socket: Socket, activity: Activity) {
    this.#socket = socket;
    this.#activity = activity;
  }

  /** Memory that the write which is under way keeps. */
  get heldBytes(): number {
    return this.#writing?.buffer.byteLength ?? 0;
  }

  /** Lets what is being written go out, and nothing after it. */
  end(): void {
    this.#isEnded = true;
  }

  /** Resolves when the last of the bytes is in the hands of the kernel. Throws when it is not. */
  async bytes(bytes: Uint8Array): Promise<void> {
    let written = await this.some(bytes);
    while (written < bytes.length) written += await this.some(bytes.subarray(written));
  }

  /** Writes what the kernel takes at once, and says how much. Throws when the client has left. */
  async some(bytes: Uint8Array): Promise<number> {
    if (this.#isEnded) throw new ClientLeft("Cannot write to a client that was turned away");
    this.#activity.enter("sending");
    this.#writing = bytes;
    try {
      return await this.#socket.write(bytes);
    } catch (cause) {
      throw new ClientLeft("Cannot write to a client", { cause });
    } finally {
      this.#writing = undefined;
    }
  }

  /** A text behind its head, which `headOf` makes for so many bytes: called twice, maybe. */
  async text(text: string, headOf: (byteLength: number) => string): Promise<number> {
    // A character has at most three bytes.
    if (3 * text.length > TOGETHER_BYTES_MAX - HEAD_BYTES_MAX) {
      const bytes = ENCODER.encode(text);
      await this.together(headOf(bytes.length), bytes);
      return bytes.length;
    }
    const buffer = TOGETHER.take();
    try {
      // Nearly all texts are ASCII, as heads are: as many bytes as characters.
      let byteLength = text.length;
      let bytes = encodedInto(buffer, headOf(byteLength) + text);
      if (bytes.surplus > 0) {
        byteLength += bytes.surplus;
        bytes = encodedInto(buffer, headOf(byteLength) + text);
      }
      await this.bytes(buffer.subarray(0, bytes.written));
      return byteLength;
    } finally {
      TOGETHER.give(buffer);
    }
  }

  /** A text, and with it the bytes behind it. */
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

/** How many bytes it is, and how many more than characters. Throws when it does not fit. */
function encodedInto(buffer: Uint8Array<ArrayBuffer>, text: string) {
  const { read, written } = ENCODER.encodeInto(text, buffer);
  if (read < text.length) throw new Error("Cannot send an answer: its head is too large");
  return { written, surplus: written - read };
}
