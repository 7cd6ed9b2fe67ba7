import { createBrotliDecompress } from "node:zlib";
import { PassThrough, pipeline, Readable } from "node:stream";
import { Decompress } from "fzstd";
import bunzip2 from "unbzip2-stream";
import xz from "xz-decompress";
import type { Compression } from "../../nix/compression.ts";

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/** How each compression is undone. All of them run on the calling thread: use a Worker. */
const DECODERS: Readonly<Record<Compression, (bytes: Bytes) => AsyncIterable<Uint8Array>>> = {
  none: (bytes) => bytes,
  xz: (bytes) => new xz.XzReadableStream(bytes),
  zstd: (bytes) => bytes.pipeThrough(zstdDecoder()),
  gzip: (bytes) => bytes.pipeThrough(new DecompressionStream("gzip")),
  bzip2: (bytes) => piped(bytes, bunzip2()),
  br: (bytes) => piped(bytes, createBrotliDecompress()),
};

/**
 * The decompressed bytes. Damage that a format can see is a throw while reading; what it cannot
 * see (a flipped bit in zstd, a cut brotli stream) is for sizes and hashes to find.
 */
export function decoded(compression: Compression, bytes: Bytes): AsyncIterable<Uint8Array> {
  return DECODERS[compression](bytes);
}

/** Errors of every part reach the reader, and a reader that leaves ends every part. */
function piped(bytes: Bytes, decoder: NodeJS.ReadWriteStream): AsyncIterable<Uint8Array> {
  return pipeline(Readable.from(bytes), decoder, new PassThrough(), () => {});
}

function zstdDecoder(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array> {
  let decoder: Decompress;
  return new TransformStream({
    start(controller) {
      decoder = new Decompress((chunk) => controller.enqueue(chunk));
    },
    transform(chunk) {
      decoder.push(chunk);
    },
    flush() {
      decoder.push(new Uint8Array(0), true);
    },
  });
}
