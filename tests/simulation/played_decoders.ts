import { decoded } from "../../src/cache/verify/decoders.ts";
import { storedZstd } from "../support/stored_frames.ts";

/**
 * Compiles WebAssembly on this thread until the end of the scope: virtual time knows nothing of the
 * threads that would else do it.
 */
export async function decodersAtOnce(): Promise<Disposable> {
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = (async (code: BufferSource, imports?: WebAssembly.Imports) => {
    const module = new WebAssembly.Module(code);
    return { module, instance: new WebAssembly.Instance(module, imports) };
  }) as typeof instantiate;
  // The code of zstd's decoder is loaded once.
  const empty = ReadableStream.from([storedZstd(new Uint8Array(0))]);
  await Array.fromAsync(decoded(empty, { compression: "zstd", narSizeMax: 0 }));
  return { [Symbol.dispose]: () => void (WebAssembly.instantiate = instantiate) };
}
