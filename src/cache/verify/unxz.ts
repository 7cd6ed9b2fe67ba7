import pLimit from "p-limit";
import xz from "xz-decompress";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { IdleModules } from "./idle_modules.ts";

/** The exports of the library's WebAssembly module, which its types lack. */
interface XzExports {
  readonly memory: WebAssembly.Memory;
  create_context(): number;
  destroy_context(context: number): void;
  supply_input(context: number, byteLength: number): void;
  get_next_output(context: number): number;
}

interface XzModules {
  /** Makes an instance, and leaves it in `_moduleInstance`. */
  _getModuleInstance(): Promise<void>;
  _moduleInstance: { readonly exports: XzExports } | undefined;
}

/** The first fields of a context, as indices of four bytes each. */
const FIELDS = {
  bufferSize: 0,
  input: 1,
  inputPosition: 2,
  inputSize: 3,
  output: 4,
  outputSize: 5,
};

const XZ_OK = 0;
const XZ_STREAM_END = 1;

/** Results of the decoder that are not damage, in words. */
const PROBLEMS: Readonly<Record<number, string>> = {
  3: "its dictionary needs too much memory",
  4: "its dictionary needs too much memory",
  5: "it does not start as xz does",
  6: "it uses a filter that is not known",
};

/**
 * Only a module whose memory a large dictionary has not grown is reused for the next file. That of
 * `xz -6`, which Nix writes, has 8 MiB. A new module takes 4 ms of processor time, a used one 0.2.
 */
const KEPT_BYTES_MAX = 12 << 20;
const KEPT_MAX = 4;

/** Modules for the next files. */
export const idleXz = new IdleModules<XzExports>(KEPT_MAX);
const making = pLimit(1);

/**
 * Decompresses xz. Each file has a module of its own: the library's stream has one for all, so that
 * a slow file would block the others. Throws for damage of any kind.
 */
export async function* unxz(
  bytes: AsyncIterable<Bytes>,
): AsyncGenerator<Uint8Array> {
  const module = idleXz.take() ?? await making(makeModule);
  const context = new XzContext(module);
  const chunks = bytes[Symbol.asyncIterator]();
  try {
    let chunk = new Uint8Array(0);
    for (let isOver = false; !isOver;) {
      if (context.needsInput) {
        if (chunk.length === 0) chunk = (await chunks.next()).value ?? chunk;
        chunk = chunk.subarray(context.take(chunk));
      }
      const { output, isLast } = context.next();
      isOver = isLast;
      if (output.length > 0) yield output;
    }
  } finally {
    await chunks.return?.();
    context.end();
    if (module.memory.buffer.byteLength <= KEPT_BYTES_MAX) idleXz.keep(module);
  }
}

async function makeModule(): Promise<XzExports> {
  const modules = xz.XzReadableStream as unknown as XzModules;
  // The library's own streams go on with theirs, and it does not hold the new one for good.
  const former = modules._moduleInstance;
  await modules._getModuleInstance();
  const instance = modules._moduleInstance;
  modules._moduleInstance = former;
  // The file is not at fault.
  if (instance === undefined) throw new Failure("broken", "Cannot load xz's decoder");
  return instance.exports;
}

class XzContext {
  readonly #module: XzExports;
  readonly #context: number;

  constructor(module: XzExports) {
    this.#module = module;
    this.#context = module.create_context();
  }

  get needsInput(): boolean {
    return this.#field("inputPosition") === this.#field("inputSize");
  }

  /** Takes bytes from the start of `chunk`, and returns their count; none end the file. */
  take(chunk: Uint8Array): number {
    const taken = chunk.subarray(0, this.#field("bufferSize"));
    new Uint8Array(this.#module.memory.buffer, this.#field("input")).set(taken);
    this.#module.supply_input(this.#context, taken.length);
    return taken.length;
  }

  next(): { readonly output: Uint8Array; readonly isLast: boolean } {
    const result = this.#module.get_next_output(this.#context);
    if (result !== XZ_OK && result !== XZ_STREAM_END) {
      throw new Error(`Cannot read xz: ${PROBLEMS[result] ?? "it is damaged, or ends too early"}`);
    }
    const start = this.#field("output");
    const output = new Uint8Array(this.#module.memory.buffer)
      .slice(start, start + this.#field("outputSize"));
    this.#fields()[FIELDS.outputSize] = 0;
    return { output, isLast: result === XZ_STREAM_END };
  }

  end(): void {
    this.#module.destroy_context(this.#context);
  }

  #field(name: keyof typeof FIELDS): number {
    return this.#fields()[FIELDS[name]] ?? 0;
  }

  /** A new view each time: memory that has grown has another buffer. */
  #fields(): Uint32Array {
    return new Uint32Array(this.#module.memory.buffer, this.#context);
  }
}
