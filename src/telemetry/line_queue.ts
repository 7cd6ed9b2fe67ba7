import type { LineSink } from "./logger.ts";

/** Waiting text beyond this is dropped: about ten thousand lines. */
const WAITING_CHARS_MAX = 2 << 20;

/** What the queue drains into, such as `Deno.stdout`. */
export interface ByteWriter {
  write(bytes: Uint8Array): Promise<number>;
}

/**
 * Lines between the server and a pipe that may stall. `write` only queues; a full queue drops
 * lines and says how many once there is room. Synchronous writes, and Node's asynchronous ones
 * too, would stop the whole process when nobody reads the other end.
 */
export class LineQueue implements LineSink {
  readonly #out: ByteWriter;
  #waiting: string[] = [];
  #waitingChars = 0;
  #dropped = 0;
  #draining: Promise<void> | undefined;

  constructor(out: ByteWriter) {
    this.#out = out;
  }

  write(line: string): void {
    if (this.#waitingChars + line.length > WAITING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    this.#draining ??= Promise.resolve().then(() => this.#drain());
  }

  /** Resolves when all that was queued is written. Race it with a limit: the reader may stall. */
  async flushed(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    const encoder = new TextEncoder();
    try {
      while (this.#waiting.length > 0) {
        let bytes = encoder.encode(this.#waiting.join("") + this.#dropNotice());
        this.#waiting = [];
        this.#waitingChars = 0;
        while (bytes.length > 0) bytes = bytes.subarray(await this.#out.write(bytes));
      }
    } catch {
      // The other end is closed: there is nobody left to tell.
      this.#waiting = [];
      this.#waitingChars = 0;
    } finally {
      this.#draining = undefined;
    }
  }

  #dropNotice(): string {
    if (this.#dropped === 0) return "";
    const notice = { level: "warn", ts: new Date().toISOString(), msg: "log lines dropped" };
    const line = JSON.stringify({ ...notice, count: this.#dropped }) + "\n";
    this.#dropped = 0;
    return line;
  }
}
