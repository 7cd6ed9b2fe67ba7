import { constants, createZstdDecompress } from "node:zlib";
import { messageOf } from "../../base/failure.ts";
import { NodeDecoder } from "./node_decoder.ts";
import type { OpenZstd, ZstdDecoder } from "./zstd_decoder.ts";
import { WINDOW_LOG_MAX } from "./zstd_frames.ts";

/** Each piece costs a turn of the event loop. */
const INPUT_BYTES = 256 * 1024;
const OUTPUT_BYTES = 256 * 1024;

/** `undefined` where the runtime has no decoder: its `node:zlib` then throws. */
export const openNativeZstd: OpenZstd | undefined = hasNativeZstd()
  ? () => Promise.resolve(new NativeZstd())
  : undefined;

function hasNativeZstd(): boolean {
  try {
    transform().destroy();
    return true;
  } catch {
    return false;
  }
}

function transform() {
  const options = {
    chunkSize: OUTPUT_BYTES,
    // It decodes one piece ahead of its reader.
    readableHighWaterMark: OUTPUT_BYTES,
    params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX },
  };
  return createZstdDecompress(options);
}

/** The decoder of the runtime. */
class NativeZstd implements ZstdDecoder {
  readonly #decoder = new NodeDecoder(transform());
  readonly #input = new Uint8Array(INPUT_BYTES);
  #inputSize = 0;

  get isFull(): boolean {
    return this.#inputSize === INPUT_BYTES;
  }

  take(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, INPUT_BYTES - this.#inputSize);
    this.#input.set(taken, this.#inputSize);
    this.#inputSize += taken.length;
    return taken.length;
  }

  async *decode(): AsyncGenerator<Uint8Array> {
    if (this.#inputSize === 0) return;
    this.#decoder.feed(this.#input.subarray(0, this.#inputSize));
    for (;;) {
      const out = await this.#output();
      if (out === "needs-input") break;
      yield out;
    }
    this.#inputSize = 0;
  }

  async close(): Promise<void> {
    await this.#decoder.close();
  }

  async #output(): Promise<Uint8Array | "needs-input"> {
    const out = await this.#decoder.output().catch((error) => {
      throw new Error(`Cannot read zstd: its decoder says "${messageOf(error)}"`);
    });
    if (out === "over") throw new Error("Cannot read zstd: its decoder stops before the end");
    return out;
  }
}
