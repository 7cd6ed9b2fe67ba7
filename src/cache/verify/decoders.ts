import { createBrotliDecompress } from "node:zlib";
import type { Bytes } from "../../base/bytes.ts";
import type { Codec } from "../../nix/content_encoding.ts";
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

/** The inflating decoders return a piece's whole output at once: up to a thousand times the piece. */
const INFLATE_PIECE_BYTES = 4 * 1_024;

/** The header of zlib: the method of deflate in the first byte, and a check of both bytes. */
const ZLIB_HEADER_BYTES = 2;
const ZLIB_DEFLATE = 8;
const ZLIB_CHECK = 31;

/**
 * The decoder of each compression. Each may stop at output of more than `narSize` bytes. They block
 * the calling thread: use a Worker.
 */
const DECODERS: Readonly<
  Record<
    Codec | "none",
    (bytes: CompressedStream, options: DecoderOptions) => AsyncIterable<Uint8Array>
  >
> = {
  none: (bytes) => bytes,
  xz: unxz,
  zstd: unzstd,
  gzip: (bytes) => inflated(bytes, "gzip"),
  deflate: undeflate,
  bzip2: unbzip2,
  br: unbrotli,
};

/**
 * The decompressed bytes, each piece until the next one: its memory may be used again. Damage that
 * the format shows throws during the read; sizes and hashes find the rest (a flipped bit in zstd, a
 * cut brotli stream).
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

function inflated(
  bytes: AsyncIterable<Bytes>,
  format: "gzip" | "deflate" | "deflate-raw",
): AsyncIterable<Uint8Array> {
  return ReadableStream.from(smaller(bytes, INFLATE_PIECE_BYTES))
    .pipeThrough(new DecompressionStream(format));
}

/** Decompresses HTTP's deflate: with the header of zlib, or without, as some servers send it. */
async function* undeflate(bytes: CompressedStream): AsyncGenerator<Uint8Array> {
  const pieces = bytes[Symbol.asyncIterator]();
  let first = (await pieces.next()).value ?? new Uint8Array(0);
  while (first.length < ZLIB_HEADER_BYTES) {
    const { value, done } = await pieces.next();
    if (done) break;
    first = new Uint8Array([...first, ...value]);
  }
  const [method = 0, flags = 0] = first;
  const hasHeader = (method & 0x0f) === ZLIB_DEFLATE && (method << 8 | flags) % ZLIB_CHECK === 0;
  const all = (async function* () {
    yield first;
    yield* { [Symbol.asyncIterator]: () => pieces };
  })();
  yield* inflated(all, hasHeader ? "deflate" : "deflate-raw");
}

async function* smaller(
  bytes: AsyncIterable<Bytes>,
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
