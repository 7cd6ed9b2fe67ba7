import type { MemoryAllowance } from "../../base/memory_allowance.ts";
import { Failure } from "../../base/failure.ts";
import { measureBytes } from "./measure_nar.ts";
import type { NarMeasure, PassThroughOrder } from "./nar_verifier.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * Decompresses and hashes a NAR file that is handed over piece by piece. Meant for a Worker:
 * decoders have no pauses of their own. It takes memory of `memory` as its decoder needs it.
 */
export class PassThroughMeasure {
  /** Rejects with "unavailable" where others hold the memory for too long. */
  readonly measure: Promise<NarMeasure>;
  readonly #writer: WritableStreamDefaultWriter<Bytes>;

  constructor(order: PassThroughOrder, memory: MemoryAllowance) {
    const { readable, writable } = new TransformStream<Bytes, Bytes>();
    this.#writer = writable.getWriter();
    const share = memory.share();
    const claim = async (bytes: number) => {
      if (await share.takeWithin(bytes, order.memoryWaitMs)) return;
      throw new Failure("unavailable", "decoders take all memory that is set aside");
    };
    this.measure = measureBytes(readable, order, claim).finally(() => share[Symbol.dispose]());
    // A decoder that has given up reads no more.
    const end = () => this.abort();
    this.measure.then(end, end);
  }

  /** Resolves when they were decoded, or are of no use any more. */
  async write(bytes: Bytes): Promise<void> {
    await this.#writer.write(bytes).catch(() => undefined);
  }

  /** No more will come. */
  end(): void {
    this.#writer.close().catch(() => undefined);
  }

  abort(): void {
    this.#writer.abort().catch(() => undefined);
  }
}
