import type { OpenZstd } from "../../src/cache/verify/zstd_decoder.ts";
import { openNativeZstd } from "../../src/cache/verify/zstd_native.ts";
import { openWasmZstd } from "../../src/cache/verify/zstd_wasm.ts";

export interface ZstdDecoding {
  readonly name: string;
  readonly open: OpenZstd;
}

/** Those that this runtime can run. */
export const ZSTD_DECODERS: readonly ZstdDecoding[] = [
  { name: "wasm", open: openWasmZstd },
  ...(openNativeZstd === undefined ? [] : [{ name: "native", open: openNativeZstd }]),
];
