import { createBrotliDecompress } from "node:zlib";
import { PassThrough, pipeline, Readable } from "node:stream";
import { Decompress } from "fzstd";
import bunzip2 from "unbzip2-stream";
import xz from "xz-decompress";
import type { Compression } from "../../nix/compression.ts";

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/**
 * Some decoders give out at once all that what they are given holds: of zstd 128 KiB for each four
 * bytes, of bzip2 900 KB for each fifty, so that a quarter of a megabyte would be gigabytes.
 */
const PIECE_BYTES = 1_024;

/** Holds a thousand times as much at most; smaller ones take twice the time. */
const GZIP_PIECE_BYTES = 16 * 1_024;

/** How each compression is undone. All of them run on the calling thread: use a Worker. */
const DECODERS: Readonly<Record<Compression, (bytes: Bytes) => AsyncIterable<Uint8Array>>> = {
  none: (bytes) => bytes,
  xz: (bytes) => new xz.XzReadableStream(bytes),
  zstd: (bytes) => unzstd(bytes),
  gzip: (bytes) =>
    ReadableStream.from(smaller(bytes, GZIP_PIECE_BYTES))
      .pipeThrough(new DecompressionStream("gzip")),
  bzip2: (bytes) => piped(smaller(bytes, PIECE_BYTES), bunzip2()),
  br: (bytes) => piped(bytes, createBrotliDecompress()),
};

/**
 * The decompressed bytes. Damage that a format can see is a throw while reading; what it cannot
 * see (a flipped bit in zstd, a cut brotli stream) is for sizes and hashes to find.
 */
export function decoded(compression: Compression, bytes: Bytes): AsyncIterable<Uint8Array> {
  return DECODERS[compression](bytes);
}

async function* smaller(
  bytes: Bytes,
  byteLength: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const chunk of bytes) yield* piecesOf(chunk, byteLength);
}

function* piecesOf(
  chunk: Uint8Array<ArrayBuffer>,
  byteLength: number,
): Iterable<Uint8Array<ArrayBuffer>> {
  for (let start = 0; start < chunk.length; start += byteLength) {
    yield chunk.subarray(start, start + byteLength);
  }
}

/** Errors of every part reach the reader, and a reader that leaves ends every part. */
function piped(
  bytes: AsyncIterable<Uint8Array<ArrayBuffer>>,
  decoder: NodeJS.ReadWriteStream,
): AsyncIterable<Uint8Array> {
  return pipeline(Readable.from(bytes), decoder, new PassThrough(), () => {});
}

async function* unzstd(bytes: Bytes): AsyncGenerator<Uint8Array> {
  let out: Uint8Array[] = [];
  const decoder = new Decompress((chunk) => void out.push(chunk));
  const taken = () => {
    const chunks = out;
    out = [];
    return chunks;
  };
  for await (const chunk of bytes) {
    for (const piece of piecesOf(chunk, PIECE_BYTES)) {
      decoder.push(piece);
      yield* taken();
    }
  }
  decoder.push(new Uint8Array(0), true);
  yield* taken();
}
