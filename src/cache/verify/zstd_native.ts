import { constants, createZstdDecompress } from "node:zlib";
import { messageOf } from "../../base/failure.ts";
import type { OpenZstd, ZstdDecoder } from "./zstd_decoder.ts";
import { WINDOW_LOG_MAX } from "./zstd_frames.ts";

const INPUT_BYTES = 256 * 1024;

/** Pieces of 512 KiB are no faster. */
const OUTPUT_BYTES = 256 * 1024;

/**
 * What lies below the streams of `node:zlib`: no public interface, as none will do. With Deno 2.9.6,
 * for a NAR of 112 MB:
 *
 * * `createZstdDecompress` ends the thread for an error that is not in the first piece of an input's
 *   output, such as a wrong checksum. It makes a new buffer for each piece: that took 17 % more
 *   processor time, and 25 to 50 MB more until they were collected.
 * * `zstdDecompressSync` needs the whole file and the whole NAR in memory.
 * * `DecompressionStream` has no zstd.
 *
 * Where it differs, `openNativeZstd` is `undefined`. Then zstd is decoded in WebAssembly, which took
 * twice the time.
 */
interface Below {
  readonly _handle: {
    writeSync(flush: number, ...inputAndOutput: [...Place, ...Place]): void;
  };
  /** The bytes that the last write left in its output and in its input. */
  readonly _writeState: { readonly [index: number]: number };
}

type Place = [bytes: Uint8Array, start: number, byteLength: number];

/** The decoder of the runtime. Its output is in the same memory each time. */
class NativeZstd implements ZstdDecoder {
  readonly #stream = createZstdDecompress({
    params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX },
  });
  readonly #input = new Uint8Array(INPUT_BYTES);
  readonly #output = new Uint8Array(OUTPUT_BYTES);
  #inputSize = 0;
  #error: unknown;

  constructor() {
    this.#stream.on("error", (error) => this.#error = error);
  }

  get isFull(): boolean {
    return this.#inputSize === INPUT_BYTES;
  }

  take(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, INPUT_BYTES - this.#inputSize);
    this.#input.set(taken, this.#inputSize);
    this.#inputSize += taken.length;
    return taken.length;
  }

  *decode(): Generator<Uint8Array> {
    for (let used = 0, isMore = this.#inputSize > 0; isMore;) {
      const [outputLeft, inputLeft] = this.#write(used);
      const length = OUTPUT_BYTES - outputLeft;
      if (length === 0 && inputLeft === this.#inputSize - used) break;
      used = this.#inputSize - inputLeft;
      if (length > 0) yield this.#output.subarray(0, length);
      isMore = inputLeft > 0 || outputLeft === 0;
    }
    this.#inputSize = 0;
  }

  close(): Promise<void> {
    this.#stream.destroy();
    // The garbage collector would leave those of many files.
    for (const { buffer } of [this.#input, this.#output]) buffer.transfer(0);
    return Promise.resolve();
  }

  #write(used: number): readonly [outputLeft: number, inputLeft: number] {
    const { _handle, _writeState } = this.#stream as unknown as Below;
    const input: Place = [this.#input, used, this.#inputSize - used];
    try {
      _handle.writeSync(constants.ZSTD_e_continue, ...input, this.#output, 0, OUTPUT_BYTES);
      if (this.#error !== undefined) throw this.#error;
    } catch (error) {
      throw new Error(`Cannot read zstd: its decoder says "${messageOf(error)}"`);
    }
    const { 0: outputLeft = NaN, 1: inputLeft = NaN } = _writeState;
    return [outputLeft, inputLeft];
  }
}

/** A frame of one byte. */
const PROBE = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x01, 0x09, 0x00, 0x00, 0x61];

/** `undefined` where the runtime has no decoder, or something else below its streams. */
export const openNativeZstd: OpenZstd | undefined = isNativeZstdFit()
  ? () => Promise.resolve(new NativeZstd())
  : undefined;

function isNativeZstdFit(): boolean {
  try {
    const decoder = new NativeZstd();
    decoder.take(Uint8Array.from(PROBE));
    const [output, ...more] = [...decoder.decode()].map((piece) => piece.join());
    void decoder.close();
    return output === `${PROBE.at(-1)}` && more.length === 0;
  } catch {
    return false;
  }
}
