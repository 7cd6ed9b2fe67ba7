import pLimit from "p-limit";
import { ZSTDDecoder } from "zstddec/stream";
import { Failure } from "../../base/failure.ts";
import { ZstdFrames } from "./zstd_frames.ts";

/** The exports of zstd's own decoder, compiled to WebAssembly. */
interface ZstdExports {
  readonly memory: WebAssembly.Memory;
  malloc(byteLength: number): number;
  ZSTD_createDCtx(): number;
  ZSTD_freeDCtx(context: number): void;
  /** Below zero: an error number. */
  ZSTD_decompressStream(context: number, output: number, input: number): number;
}

export interface ZstdBounds {
  readonly narSize: number;
  /** Called before a window takes `bytes` more memory; a throw refuses them. */
  readonly claim: (bytes: number) => Promise<void>;
}

const INPUT_BYTES = 128 * 1024;
const OUTPUT_BYTES = 128 * 1024;

/** The layout of two buffers: address, size and position of each. */
const WORD_BYTES = 4;
const FIELDS = { input: 0, inputSize: 1, inputUsed: 2, output: 3, outputSize: 4, outputUsed: 5 };
const FIELD_COUNT = 6;

/** Only a module whose memory a window has not grown is reused for the next file. */
const KEPT_BYTES_MAX = 20 << 20;
const KEPT_MAX = 4;

const kept: ZstdModule[] = [];
const compiling = pLimit(1);
let compiled: WebAssembly.Module | undefined;

/**
 * Decompresses zstd with its own decoder, a module for each file. Throws for damage that the format
 * shows, and for windows that are too large for the NAR.
 */
export async function* unzstd(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
  { narSize, claim }: ZstdBounds,
): AsyncGenerator<Uint8Array> {
  const module = kept.pop() ?? new ZstdModule(await compiling(compile));
  const frames = new ZstdFrames(narSize);
  let claimed = 0;
  module.open();
  try {
    for await (const chunk of bytes) {
      for (const piece of frames.checked(chunk)) {
        const wanted = frames.windowBytes - claimed;
        if (wanted > 0) await claim(wanted);
        claimed += Math.max(0, wanted);
        for (let rest = piece; rest.length > 0;) {
          rest = rest.subarray(module.take(rest));
          if (module.isFull) yield* module.decode();
        }
      }
      yield* module.decode();
    }
    frames.end();
  } finally {
    module.close();
    if (module.heldBytes <= KEPT_BYTES_MAX && kept.length < KEPT_MAX) kept.push(module);
  }
}

/** The library has one instance, for one file at a time: larder takes its code alone. */
class ZstdCode extends ZSTDDecoder {
  override _init({ module }: WebAssembly.WebAssemblyInstantiatedSource): void {
    compiled = module;
  }
}

async function compile(): Promise<WebAssembly.Module> {
  if (compiled === undefined) await new ZstdCode().init();
  // The file is not at fault.
  if (compiled === undefined) throw new Failure("broken", "Cannot load zstd's decoder");
  return compiled;
}

class ZstdModule {
  readonly #exports: ZstdExports;
  readonly #input: number;
  readonly #output: number;
  readonly #fields: number;
  #context = 0;
  #inputSize = 0;

  constructor(code: WebAssembly.Module) {
    const env = { emscripten_notify_memory_growth: () => undefined };
    this.#exports = new WebAssembly.Instance(code, { env }).exports as unknown as ZstdExports;
    this.#input = this.#exports.malloc(INPUT_BYTES);
    this.#output = this.#exports.malloc(OUTPUT_BYTES);
    this.#fields = this.#exports.malloc(FIELD_COUNT * WORD_BYTES);
  }

  get heldBytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  /** True: decode before the next `take`. */
  get isFull(): boolean {
    return this.#inputSize === INPUT_BYTES;
  }

  open(): void {
    this.#context = this.#exports.ZSTD_createDCtx();
    this.#inputSize = 0;
  }

  close(): void {
    this.#exports.ZSTD_freeDCtx(this.#context);
  }

  /** Takes bytes from the start of `bytes` and returns their count. */
  take(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, INPUT_BYTES - this.#inputSize);
    this.#bytesAt(this.#input + this.#inputSize, taken.length).set(taken);
    this.#inputSize += taken.length;
    return taken.length;
  }

  /** The output of the taken bytes, in small pieces. */
  *decode(): Generator<Uint8Array> {
    for (let used = 0, isMore = this.#inputSize > 0; isMore;) {
      const fields = [this.#input, this.#inputSize, used, this.#output, OUTPUT_BYTES, 0];
      this.#words().set(fields);
      const place = this.#fields;
      const outputPlace = place + FIELDS.output * WORD_BYTES;
      const result = this.#exports.ZSTD_decompressStream(this.#context, outputPlace, place);
      if (result < 0) throw new Error(`Cannot read zstd: its decoder says ${-result}`);
      const words = this.#words();
      used = words[FIELDS.inputUsed] ?? 0;
      const length = words[FIELDS.outputUsed] ?? 0;
      if (length > 0) yield this.#bytesAt(this.#output, length).slice();
      isMore = used < this.#inputSize || length === OUTPUT_BYTES;
    }
    this.#inputSize = 0;
  }

  /** A new view each time: memory that has grown has another buffer. */
  #words(): Uint32Array {
    return new Uint32Array(this.#exports.memory.buffer, this.#fields, FIELD_COUNT);
  }

  #bytesAt(place: number, byteLength: number): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, place, byteLength);
  }
}
