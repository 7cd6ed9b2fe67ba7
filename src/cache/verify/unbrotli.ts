import { setImmediate } from "node:timers/promises";
import { createBrotliDecompress } from "node:zlib";
import { Notifier } from "../../base/notifier.ts";

/** How often to check whether an unread decoder stands still. */
const LOOKS_MAX = 1_000;

/**
 * Decompresses brotli at the reader's pace. Throws for damage; a cut file ends short. The decoder
 * is closed only while it stands still: closing a working one ends the process (Deno 2.6.8).
 */
export async function* unbrotli(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Uint8Array> {
  const chunks = bytes[Symbol.asyncIterator]();
  const decoder = new Decoder();
  try {
    for (;;) {
      const out = await decoder.output();
      if (out === "over") return;
      if (out === "hungry") decoder.feed(await chunks.next());
      else yield out;
    }
  } finally {
    await decoder.close();
    await chunks.return?.();
  }
}

class Decoder {
  readonly #decoder = createBrotliDecompress();
  readonly #changed = new Notifier();
  /** True while it decodes its input. */
  #isAtWork = false;
  #isOver = false;
  #error: unknown;

  constructor() {
    this.#decoder.on("readable", () => this.#changed.notify());
    this.#decoder.on("end", () => {
      this.#isOver = true;
      this.#changed.notify();
    });
    this.#decoder.on("error", (error) => {
      this.#error = error;
      this.#changed.notify();
    });
  }

  /** The next output; "hungry" where it needs more input first. */
  async output(): Promise<Uint8Array | "hungry" | "over"> {
    for (;;) {
      const out = this.#decoder.read();
      if (out !== null) return out;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return "over";
      if (!this.#isAtWork) return "hungry";
      await this.#changed.notified();
    }
  }

  feed({ value, done }: IteratorResult<Uint8Array>): void {
    this.#isAtWork = true;
    if (done) return void this.#decoder.end();
    this.#decoder.write(value, () => {
      this.#isAtWork = false;
      this.#changed.notify();
    });
  }

  async close(): Promise<void> {
    for (let looks = 0; this.#mayMove && looks < LOOKS_MAX; looks++) await setImmediate();
    await setImmediate();
    this.#decoder.destroy();
  }

  /** False without input, or without room for more output. */
  get #mayMove(): boolean {
    const { readableLength, readableHighWaterMark } = this.#decoder;
    return this.#isAtWork && !this.#isOver && this.#error === undefined &&
      readableLength < readableHighWaterMark;
  }
}
