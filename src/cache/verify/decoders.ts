import type { Compression } from "../../nix/compression.ts";
import { decoderBytesMax, type Decoding } from "./decoder_bytes.ts";
import { unbrotli } from "./unbrotli.ts";
import { unbzip2 } from "./unbzip2.ts";
import { unxz } from "./unxz.ts";
import { unzstd } from "./unzstd.ts";

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Called before so much memory is taken beyond what was claimed before; a throw refuses it. */
export type Claim = (bytes: number) => Promise<void>;

interface DecoderOptions {
  readonly narSize: number;
  readonly claim: Claim;
}

/** It gives out at once all that a piece holds, which is a thousand times as much at most. */
const GZIP_PIECE_BYTES = 4 * 1_024;

/**
 * How each compression is undone; what holds more than `narSize` bytes may be broken off. All of
 * them run on the calling thread: use a Worker.
 */
const DECODERS: Readonly<
  Record<Compression, (bytes: Bytes, options: DecoderOptions) => AsyncIterable<Uint8Array>>
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
 * The decompressed bytes. Damage that a format can see is a throw while reading; what it cannot
 * see (a flipped bit in zstd, a cut brotli stream) is for sizes and hashes to find.
 */
export async function* decoded(
  bytes: Bytes,
  decoding: Decoding,
  claim: Claim = () => Promise.resolve(),
): AsyncGenerator<Uint8Array> {
  const { compression, narSizeMax: narSize } = decoding;
  // What zstd takes stands in its frames, and is mostly much less.
  if (compression !== "zstd") await claim(decoderBytesMax(decoding));
  yield* DECODERS[compression](bytes, { narSize, claim });
}

async function* smaller(
  bytes: Bytes,
  byteLength: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += byteLength) {
      yield chunk.subarray(start, start + byteLength);
    }
  }
}
