import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Failure } from "../../base/failure.ts";
import { measureBytes } from "./measure_nar.ts";
import type { NarMeasure, PassThroughOrder } from "./nar_verifier.ts";
import { sharedPace } from "./pace.ts";
import type { Bytes } from "../../base/bytes.ts";

/**
 * Decompresses and hashes a NAR file piece by piece. Use it in a Worker: decoders do not yield. It
 * takes memory from `memory` when its decoder needs it.
 */
export class PassThroughMeasure {
  /** Rejects with "unavailable" when others hold the memory for too long. */
  readonly measure: Promise<NarMeasure>;
  readonly #writer: WritableStreamDefaultWriter<Bytes>;

  /** The taker has the last piece when it resolves. */
  #taken: PromiseWithResolvers<void> | undefined;
  #isAborted = false;

  /** `give`: sends a piece of the NAR to its taker, who answers with `goOn`. */
  constructor(
    order: PassThroughOrder,
    memory: MemoryAllowance,
    give?: (piece: Bytes) => void,
  ) {
    const { readable, writable } = new TransformStream<Bytes, Bytes>();
    this.#writer = writable.getWriter();
    const share = memory.share();
    const claim = async (bytes: number) => {
      if (await share.takeWithin(bytes, order.memoryWaitMs)) return;
      throw new Failure("unavailable", "decoders use all of their memory");
    };
    const taker = give && (async (piece: Uint8Array) => {
      this.#taken = Promise.withResolvers();
      give(piece.slice());
      await this.#taken.promise;
      if (this.#isAborted) throw new Error("Cannot decode: cancelled");
    });
    this.measure = measureBytes(readable, order, sharedPace(claim), taker)
      .finally(() => share[Symbol.dispose]());
    // The decoder has failed and reads no more.
    const end = () => this.abort();
    this.measure.then(end, end);
  }

  /** Resolves when the bytes are decoded, or no longer needed. */
  async write(bytes: Bytes): Promise<void> {
    await this.#writer.write(bytes).catch(() => undefined);
  }

  /** The file is complete. */
  end(): void {
    this.#writer.close().catch(() => undefined);
  }

  /** The next piece may follow the one that was given. */
  goOn(): void {
    this.#taken?.resolve();
  }

  abort(): void {
    this.#isAborted = true;
    this.goOn();
    this.#writer.abort().catch(() => undefined);
  }
}
