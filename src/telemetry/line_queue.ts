import { pause } from "../base/pause.ts";
import type { LineSink } from "./logger.ts";

/** Limit of waiting text, about ten thousand lines. Lines beyond it are dropped. */
const WAITING_CHARS_MAX = 2 << 20;

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
  #waiting: string[] = [];
  #waitingChars = 0;
  #dropped = 0;
  #draining: Promise<void> | undefined;

  /** Lines leave as they come without `format`. */
  constructor(out: ByteWriter, format?: LineFormat) {
    this.#out = out;
    this.#format = format;
  }

  write(line: string): void {
    if (this.#waitingChars + line.length > WAITING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    this.#draining ??= this.#drain();
  }

  /** Resolves when all queued lines are written. Race it with a timeout: the reader may stall. */
  async flushed(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    const encoder = new TextEncoder();
    try {
      while (this.#waiting.length > 0) {
        await pause(GATHER_MS);
        const lines = [...this.#waiting, ...this.#dropNotice()];
        this.#waiting = [];
        this.#waitingChars = 0;
        const shown = this.#format === undefined ? lines : lines.map(this.#format);
        let bytes = encoder.encode(shown.join(""));
        while (bytes.length > 0) bytes = bytes.subarray(await this.#out.write(bytes));
      }
    } catch {
      // The other end is closed, so no one can read more.
      this.#waiting = [];
      this.#waitingChars = 0;
    } finally {
      this.#draining = undefined;
    }
  }

  #dropNotice(): readonly string[] {
    if (this.#dropped === 0) return [];
    const notice = { level: "warn", ts: new Date().toISOString(), msg: "log lines dropped" };
    const line = JSON.stringify({ ...notice, count: this.#dropped }) + "\n";
    this.#dropped = 0;
    return [line];
  }
}
