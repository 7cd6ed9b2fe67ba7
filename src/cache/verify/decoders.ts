import { createBrotliDecompress } from "node:zlib";
import type { Bytes } from "../../base/bytes.ts";
import type { Compression } from "../../nix/compression.ts";
import { decoderBytesMax, type Decoding } from "./decoder_bytes.ts";
import { NodeDecoder } from "./node_decoder.ts";
import { unbzip2 } from "./unbzip2.ts";
import { idleXz, unxz } from "./unxz.ts";
import { unzstd } from "./unzstd.ts";
import { idleZstd } from "./zstd_wasm.ts";

type CompressedStream = ReadableStream<Bytes>;

/** Called before a decoder takes `bytes` more memory; a throw refuses them. */
export type Claim = (bytes: number) => Promise<void>;

interface DecoderOptions {
  readonly narSize: number;
  readonly claim: Claim;
}

/** The gzip decoder returns a piece's whole output at once: up to a thousand times the piece. */
const GZIP_PIECE_BYTES = 4 * 1_024;

/**
 * The decoder of each compression. Each may stop at output of more than `narSize` bytes. They block
 * the calling thread: use a Worker.
 */
const DECODERS: Readonly<
  Record<
    Compression,
    (bytes: CompressedStream, options: DecoderOptions) => AsyncIterable<Uint8Array>
  >
> = {
  none: (bytes) => bytes,
  xz: unxz,
  zstd: unzstd,
  gzip: (bytes) =>
    ReadableStream.from(smaller(bytes, GZIP_PIECE_BYTES))
      .pipeThrough(new DecompressionStream("gzip")),
  bzip2: unbzip2,
  br: unbrotli,
};

/**
 * The decompressed bytes. Damage that the format shows throws during the read; sizes and hashes
 * find the rest (a flipped bit in zstd, a cut brotli stream).
 */
export async function* decoded(
  bytes: CompressedStream,
  decoding: Decoding,
  claim: Claim = () => Promise.resolve(),
): AsyncGenerator<Uint8Array> {
  const { compression, narSizeMax: narSize } = decoding;
  // The zstd decoder claims memory by its frames, mostly much less.
  if (compression !== "zstd") await claim(decoderBytesMax(decoding));
  yield* DECODERS[compression](bytes, { narSize, claim });
}

/** Drops idle decoders, unless a file began or ended since the last call. */
export function dropUnusedDecoders(): void {
  idleXz.dropUnused();
  idleZstd.dropUnused();
}

async function* smaller(
  bytes: CompressedStream,
  byteLength: number,
): AsyncGenerator<Bytes> {
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += byteLength) {
      yield chunk.subarray(start, start + byteLength);
    }
  }
}

/** Decompresses brotli at the reader's pace. Throws for damage; a cut file ends short. */
async function* unbrotli(
  bytes: AsyncIterable<Bytes>,
): AsyncGenerator<Uint8Array> {
  const chunks = bytes[Symbol.asyncIterator]();
  const decoder = new NodeDecoder(createBrotliDecompress());
  try {
    for (;;) {
      const out = await decoder.output();
      if (out === "over") return;
      if (out === "needs-input") {
        const { value, done } = await chunks.next();
        if (done) decoder.end();
        else decoder.feed(value);
      } else yield out;
    }
  } finally {
    await decoder.close();
    await chunks.return?.();
  }
}
