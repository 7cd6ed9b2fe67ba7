import type { Transform } from "node:stream";
import { Notifier } from "../../base/notifier.ts";
import { clock } from "../../runtime/current.ts";

/** How often to check whether an unread decoder is idle. */
const STANDSTILL_CHECKS_MAX = 1_000;

/**
 * A decoder of `node:zlib` at the reader's pace. It is closed only while it is idle: closing a
 * working one ends the process (Deno 2.6.8).
 */
export class NodeDecoder {
  readonly #decoder: Transform;
  readonly #changed = new Notifier();
  /** True while it decodes its input. */
  #isAtWork = false;
  #isOver = false;
  #error: unknown;

  constructor(decoder: Transform) {
    this.#decoder = decoder;
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

  /** The next output; "needs-input" where it needs more input first. */
  async output(): Promise<Uint8Array | "needs-input" | "over"> {
    for (;;) {
      const out = this.#decoder.read();
      if (out !== null) return out;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return "over";
      if (!this.#isAtWork) return "needs-input";
      await this.#changed.notified();
    }
  }

  /** The caller leaves `bytes` unchanged until the decoder needs input again. */
  feed(bytes: Uint8Array): void {
    this.#isAtWork = true;
    this.#decoder.write(bytes, () => {
      this.#isAtWork = false;
      this.#changed.notify();
    });
  }

  /** The file is complete. */
  end(): void {
    this.#isAtWork = true;
    this.#decoder.end();
  }

  async close(): Promise<void> {
    for (let checks = 0; this.#mayMove && checks < STANDSTILL_CHECKS_MAX; checks++) {
      await clock.soonOver();
    }
    await clock.soonOver();
    this.#decoder.destroy();
  }

  /** False without input, or without room for more output. */
  get #mayMove(): boolean {
    const { readableLength, readableHighWaterMark } = this.#decoder;
    return this.#isAtWork && !this.#isOver && this.#error === undefined &&
      readableLength < readableHighWaterMark;
  }
}
