import { createHash } from "node:crypto";
import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Failure } from "../../base/failure.ts";
import { countBytes, withDigest } from "./measure_nar.ts";
import type { NarCount, NarMeasure, NarSpeaker, PassThroughOrder } from "./nar_verifier.ts";
import { sharedPace } from "./pace.ts";
import type { Bytes } from "../../base/bytes.ts";

/**
 * Decompresses and hashes a NAR file piece by piece. Use it in a Worker: decoders do not yield. It
 * takes memory from `memory` when its decoder needs it.
 */
export class PassThroughMeasure {
  /** Rejects with "unavailable" when others hold the memory for too long. */
  readonly measure: Promise<NarMeasure | NarCount>;
  readonly #writer: WritableStreamDefaultWriter<Bytes>;

  /** The taker has the last piece when it resolves. */
  #taken: PromiseWithResolvers<void> | undefined;
  #isAborted = false;
  /** True for a decoder that copies each piece before it asks for the next one. */
  readonly #freesInput: boolean;
  /** The memory of the last written piece. */
  #read = new ArrayBuffer(0);
  /** That of the last piece that was given. */
  #spare = new ArrayBuffer(0);

  /**
   * `give`: sends a piece of the NAR to its taker, who answers with `goOn`; with a `speaker`, a piece
   * of what that makes of it.
   */
  constructor(
    order: PassThroughOrder,
    memory: MemoryAllowance,
    give?: (piece: Bytes) => void,
    speaker?: NarSpeaker,
  ) {
    const { readable, writable } = new TransformStream<Bytes, Bytes>();
    this.#writer = writable.getWriter();
    this.#freesInput = order.compression === "zstd";
    const share = memory.share();
    const claim = async (bytes: number) => {
      if (await share.takeWithin(bytes, order.memoryWaitMs)) return;
      throw new Failure("unavailable", "decoders use all of their memory");
    };
    const hash = order.hashesNar === false ? undefined : createHash("sha256");
    const giveAll = async (pieces: Iterable<Uint8Array>) => {
      for (const piece of pieces) await (give && this.#give(piece, give));
    };
    const taker = (piece: Uint8Array) => {
      hash?.update(piece);
      return giveAll(speaker?.speak(piece) ?? [piece]);
    };
    this.measure = countBytes(readable, order, sharedPace(claim), taker)
      .then(async (count) => {
        const isWhole = count.kind === "counted" && count.narSize === order.narSizeMax;
        if (speaker !== undefined && isWhole) await giveAll([speaker.end()]);
        return count;
      })
      .then((count) => hash === undefined ? count : withDigest(count, hash))
      .finally(() => {
        share[Symbol.dispose]();
        free(this.#read);
        free(this.#spare);
      });
    // The decoder has failed and reads no more.
    const end = () => this.abort();
    this.measure.then(end, end);
  }

  /** Resolves when the bytes are decoded, or no longer needed. */
  async write(bytes: Bytes): Promise<void> {
    await this.#writer.write(bytes).catch(() => undefined);
    if (!this.#freesInput) return;
    // The decoder asked for these bytes, and so has copied the former ones.
    free(this.#read);
    this.#read = bytes.buffer;
  }

  /** The file is complete. */
  end(): void {
    this.#writer.close().catch(() => undefined);
  }

  /** The next piece may follow the one that was given, and use its memory. */
  goOn(spare?: ArrayBuffer): void {
    if (spare !== undefined) this.#spare = spare;
    this.#taken?.resolve();
  }

  abort(): void {
    this.#isAborted = true;
    this.goOn();
    this.#writer.abort().catch(() => undefined);
  }

  async #give(piece: Uint8Array, give: (piece: Bytes) => void): Promise<void> {
    this.#taken = Promise.withResolvers();
    give(this.#copy(piece));
    await this.#taken.promise;
    if (this.#isAborted) throw new Error("Cannot decode: cancelled");
  }

  /** New memory for each piece costs more time than the copy. */
  #copy(piece: Uint8Array): Bytes {
    // A slice of a Buffer would be no copy.
    if (this.#spare.byteLength < piece.length) return new Uint8Array(piece);
    const copy = new Uint8Array(this.#spare, 0, piece.length);
    copy.set(piece);
    return copy;
  }
}

/** The garbage collector would let tens of megabytes wait. */
function free(memory: ArrayBuffer): void {
  if (!memory.detached) memory.transfer(0);
}
