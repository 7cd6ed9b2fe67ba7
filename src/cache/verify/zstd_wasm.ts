import pLimit from "p-limit";
import { ZSTDDecoder } from "zstddec/stream";
import { Failure } from "../../base/failure.ts";
import { IdleModules } from "./idle_modules.ts";
import type { ZstdDecoder } from "./zstd_decoder.ts";

/** The exports of zstd's own decoder, compiled to WebAssembly. */
interface ZstdExports {
  readonly memory: WebAssembly.Memory;
  malloc(byteLength: number): number;
  ZSTD_createDCtx(): number;
  ZSTD_freeDCtx(context: number): void;
  /** Below zero: an error number. */
  ZSTD_decompressStream(context: number, output: number, input: number): number;
}

/** The error number for a module that gets no more memory. */
const ZSTD_MEMORY = 64;

const INPUT_BYTES = 128 * 1024;
const OUTPUT_BYTES = 128 * 1024;

/** The layout of two buffers: address, size and position of each. */
const WORD_BYTES = 4;
const FIELDS = { input: 0, inputSize: 1, inputUsed: 2, output: 3, outputSize: 4, outputUsed: 5 };
const FIELD_COUNT = 6;

/** Only a module whose memory a window has not grown is reused for the next file. */
const KEPT_BYTES_MAX = 20 << 20;
const KEPT_MAX = 4;

/** Modules for the next files. */
export const idleZstd = new IdleModules<ZstdModule>(KEPT_MAX);
const compiling = pLimit(1);
let compiled: WebAssembly.Module | undefined;

/** Each file has a module of its own. */
export async function openWasmZstd(): Promise<ZstdDecoder> {
  const module = idleZstd.take() ?? new ZstdModule(await compiling(compile));
  module.open();
  return module;
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

class ZstdModule implements ZstdDecoder {
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

  get isFull(): boolean {
    return this.#inputSize === INPUT_BYTES;
  }

  open(): void {
    this.#context = this.#exports.ZSTD_createDCtx();
    this.#inputSize = 0;
  }

  close(): Promise<void> {
    this.#exports.ZSTD_freeDCtx(this.#context);
    if (this.#exports.memory.buffer.byteLength <= KEPT_BYTES_MAX) idleZstd.keep(this);
    return Promise.resolve();
  }

  take(bytes: Uint8Array): number {
    const taken = bytes.subarray(0, INPUT_BYTES - this.#inputSize);
    this.#bytesAt(this.#input + this.#inputSize, taken.length).set(taken);
    this.#inputSize += taken.length;
    return taken.length;
  }

  *decode(): Generator<Uint8Array> {
    for (let used = 0, isMore = this.#inputSize > 0; isMore;) {
      const fields = [this.#input, this.#inputSize, used, this.#output, OUTPUT_BYTES, 0];
      this.#fieldView().set(fields);
      const place = this.#fields;
      const outputPlace = place + FIELDS.output * WORD_BYTES;
      const result = this.#exports.ZSTD_decompressStream(this.#context, outputPlace, place);
      if (result < 0) {
        const reason = result === -ZSTD_MEMORY ? "out of memory" : "the data is damaged";
        throw new Error(`Cannot read zstd: its decoder says "${reason}"`);
      }
      const view = this.#fieldView();
      used = view[FIELDS.inputUsed] ?? 0;
      const length = view[FIELDS.outputUsed] ?? 0;
      if (length > 0) yield this.#bytesAt(this.#output, length);
      isMore = used < this.#inputSize || length === OUTPUT_BYTES;
    }
    this.#inputSize = 0;
  }

  /** A new view each time: memory that has grown has another buffer. */
  #fieldView(): Uint32Array {
    return new Uint32Array(this.#exports.memory.buffer, this.#fields, FIELD_COUNT);
  }

  #bytesAt(place: number, byteLength: number): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, place, byteLength);
  }
}
