import { pause } from "../base/pause.ts";
import type { LineSink } from "./logger.ts";
import { TextBuffer } from "./text_buffer.ts";

/** Limit of waiting text, about five thousand lines. Lines beyond it are dropped. */
const WAITING_BYTES_MAX = 2 << 20;

/** Lines of this time share a write, which costs the processor more than a line does. */
const GATHER_MS = 5;

/** Turns a finished line into what is written for it, such as a line for people. Never throws. */
export type LineFormat = (line: string) => string;

/** The output behind the queue, such as `Deno.stdout`. */
export interface ByteWriter {
  write(bytes: Uint8Array): Promise<number>;
}

/**
 * A queue of lines for a pipe that may stall. `write` never blocks. A full queue drops lines, and
 * later logs how many. Direct writes to a stalled pipe would block the process, Node's asynchronous
 * ones included.
 */
export class LineQueue implements LineSink {
  readonly #out: ByteWriter;
  readonly #format: LineFormat | undefined;
  #waiting = new TextBuffer();
  /** The lines that are being written. */
  #leaving = new TextBuffer();
  #dropped = 0;
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
    try {
      while (this.#waiting.byteLength > 0) {
        await pause(GATHER_MS);
        this.#noteDropped();
        [this.#waiting, this.#leaving] = [this.#leaving, this.#waiting];
        let bytes = this.#leaving.bytes();
        while (bytes.length > 0) bytes = bytes.subarray(await this.#out.write(bytes));
        this.#leaving.clear();
      }
    } catch {
      // The other end is closed, so no one can read more.
      this.#waiting.clear();
      this.#leaving.clear();
    } finally {
      this.#draining = undefined;
    }
  }

  #noteDropped(): void {
    if (this.#dropped === 0) return;
    const notice = { level: "warn", ts: new Date().toISOString(), msg: "log lines dropped" };
    const line = JSON.stringify({ ...notice, count: this.#dropped }) + "\n";
    this.#dropped = 0;
    this.#waiting.append(this.#format === undefined ? line : this.#format(line));
  }
}
