import { Notifier } from "../../base/notifier.ts";
import type { NarPart } from "../fetch/nar_sink.ts";
import type { Bytes } from "../../base/bytes.ts";

/**
 * The client of a pass-through. It takes one piece at a time: `give` waits until the client needs
 * the next.
 */
export class ClientReader {
  readonly #changed = new Notifier();
  #part: NarPart | undefined;
  #piece: Bytes | undefined;
  #isOver = false;
  #error: unknown;

  /** `rest`: the part for a client that has begun to read another copy. */
  constructor(rest?: NarPart) {
    this.#part = rest;
  }

  /** The bytes that the client already has. */
  get sent(): (NarPart["sent"] & { readonly end: number }) | undefined {
    return this.#part?.sent && { ...this.#part.sent, end: this.#part.start };
  }

  /** The requested part; `undefined` when the client left before its request. */
  async part(): Promise<NarPart | undefined> {
    while (this.#part === undefined && !this.#isOver) await this.#changed.notified();
    return this.#part;
  }

  /** Resolves when the client needs the next piece, or has left. */
  async give(piece: Bytes): Promise<void> {
    if (this.#isOver) return;
    this.#piece = piece;
    this.#changed.notify();
    while (this.#piece === piece && !this.#isOver) await this.#changed.notified();
  }

  /** No more pieces follow. The client still gets the last one. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#changed.notify();
  }

  /** The bytes of `part`; once. */
  async *pieces(part: NarPart): AsyncGenerator<Bytes> {
    this.#part = part;
    this.#changed.notify();
    try {
      for (;;) {
        while (this.#piece === undefined && !this.#isOver) await this.#changed.notified();
        if (this.#piece === undefined) break;
        yield this.#piece;
        this.#piece = undefined;
        this.#changed.notify();
      }
      if (this.#error !== undefined) throw this.#error;
    } finally {
      this.#piece = undefined;
      this.end();
    }
  }
}
