import type { Bytes } from "../base/bytes.ts";
import { clock } from "../runtime/current.ts";
import { EVENTS } from "./events.ts";
import type { LineSink } from "./logger.ts";

/** Limit of waiting text, about five thousand lines. The queue drops lines beyond it. */
const WAITING_BYTES_MAX = 2 << 20;

/** Lines of this time share a write, which costs the processor more than a line does. */
const GATHER_MS = 5;

const NEWLINE = new TextEncoder().encode("\n");
const NEWLINE_BYTE = 10;

/** Turns a finished line into the text that is written, such as a line for people. Never throws. */
export type LineFormat = (line: string) => string;

/** The output behind the queue, such as `Deno.stdout`. */
export interface ByteWriter {
  write(bytes: Uint8Array): Promise<number>;
}

/**
 * A queue of lines for a pipe that may stall. `write` never blocks. A full queue drops lines, and a
 * failed write loses some. The log later says how many. Direct writes to a stalled pipe would block
 * the process, Node's asynchronous ones included.
 */
export class LineQueue implements LineSink {
  readonly #out: ByteWriter;
  readonly #format: LineFormat | undefined;
  #waiting = new TextBuffer();
  /** The lines that are being written. */
  #leaving = new TextBuffer();
  #dropped = 0;
  /** True if a failed write has left a part of a line. */
  #isCut = false;
  #draining: Promise<void> | undefined;

  /** Lines leave as they come without `format`. */
  constructor(out: ByteWriter, format?: LineFormat) {
    this.#out = out;
    this.#format = format;
  }

  write(line: string): void {
    if (this.#waiting.byteLength + line.length > WAITING_BYTES_MAX) {
      this.#dropped++;
      return;
    }
    this.#waiting.append(this.#format === undefined ? line : this.#format(line));
    this.#draining ??= this.#drain();
  }

  /** Resolves when all queued lines are written. Race it with a timeout: the reader may stall. */
  async flushed(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    let bytes = this.#leaving.bytes();
    let noted = 0;
    try {
      while (this.#waiting.byteLength > 0) {
        await clock.pause(GATHER_MS);
        noted = this.#noteDropped();
        [this.#waiting, this.#leaving] = [this.#leaving, this.#waiting];
        bytes = this.#leaving.bytes();
        if (this.#isCut) await this.#out.write(NEWLINE);
        this.#isCut = false;
        while (bytes.length > 0) bytes = bytes.subarray(await this.#out.write(bytes));
        this.#leaving.clear();
        this.#dropped -= noted;
        noted = 0;
      }
    } catch {
      // The other end is closed, or the disk is full: the next line finds out whether it still is.
      this.#isCut ||= isCut(this.#leaving.bytes(), bytes);
      const lost = linesIn(bytes) + linesIn(this.#waiting.bytes());
      // The notice is no line of the log, and comes again.
      this.#dropped += noted > 0 ? lost - 1 : lost;
      this.#waiting.clear();
      this.#leaving.clear();
    } finally {
      this.#draining = undefined;
    }
  }

  /** Appends a notice, and returns the count in it. */
  #noteDropped(): number {
    if (this.#dropped === 0) return 0;
    const { level, words: msg } = EVENTS["log-lines-dropped"];
    const notice = { level, ts: new Date(clock.wallMs()).toISOString(), msg };
    const line = JSON.stringify({ ...notice, count: this.#dropped }) + "\n";
    this.#waiting.append(this.#format === undefined ? line : this.#format(line));
    return this.#dropped;
  }
}

function linesIn(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => byte === NEWLINE_BYTE ? count + 1 : count, 0);
}

/** True if the bytes before `left` end within a line. */
function isCut(bytes: Uint8Array, left: Uint8Array): boolean {
  const last = bytes[bytes.length - left.length - 1];
  return last !== undefined && last !== NEWLINE_BYTE;
}

/** The buffer of a quiet moment; one that has grown beyond it is not used again. */
const BYTES_MIN = 64 * 1024;

const ENCODER = new TextEncoder();

/**
 * Texts, encoded one behind the other. A log line that waits as a string has many parts in the
 * engine's heap, which each collection copies. That is a fifth of a small NAR hit's CPU time.
 */
export class TextBuffer {
  #buffer = new Uint8Array(BYTES_MIN);
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  append(text: string): void {
    // A character has at most three bytes.
    const needed = this.#byteLength + 3 * text.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#byteLength += ENCODER.encodeInto(text, this.#buffer.subarray(this.#byteLength)).written;
  }

  /** All bytes, valid until the next `append` or `clear`. */
  bytes(): Bytes {
    return this.#buffer.subarray(0, this.#byteLength);
  }

  clear(): void {
    this.#byteLength = 0;
    if (this.#buffer.length > BYTES_MIN) this.#buffer = new Uint8Array(BYTES_MIN);
  }

  #grow(needed: number): void {
    const grown = new Uint8Array(Math.max(needed, 2 * this.#buffer.length));
    grown.set(this.bytes());
    this.#buffer = grown;
  }
}
