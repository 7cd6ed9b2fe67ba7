import { Buffer } from "node:buffer";
import { promisify } from "node:util";
import { brotliDecompress, gunzip } from "node:zlib";
import unbzip2 from "unbzip2-stream";
import type { Bytes } from "../../src/base/bytes.ts";
import { unxz } from "../../src/cache/verify/unxz.ts";
import { unzstd } from "../../src/cache/verify/unzstd.ts";
import type { Compression } from "../../src/nix/compression.ts";
import { filter } from "./compressors.ts";
import { isInstalled } from "./program.ts";

/**
 * The bytes that were compressed, to judge a server's response. By the real program where there is
 * one, so that a test does not trust the decoder that the product uses. Throws on damage that the
 * decoder notices.
 */
export async function decompress(
  bytes: Bytes,
  compression: Compression,
): Promise<Bytes> {
  switch (compression) {
    case "none":
      return bytes;
    case "gzip":
      return new Uint8Array(await promisify(gunzip)(bytes));
    case "br":
      return new Uint8Array(await promisify(brotliDecompress)(bytes));
    default:
      return isInstalled(compression)
        ? await filter(compression, ["-d", "-c", "-q"], bytes)
        : await inProcess[compression](bytes);
  }
}

const inProcess = {
  async xz(bytes: Bytes): Promise<Bytes> {
    return new Uint8Array(Buffer.concat(await Array.fromAsync(unxz(new Blob([bytes]).stream()))));
  },
  async zstd(bytes: Bytes): Promise<Bytes> {
    const bounds = { narSize: Infinity, claim: () => Promise.resolve() };
    const pieces = unzstd(new Blob([bytes]).stream(), bounds);
    const copy = (piece: Uint8Array) => new Uint8Array(piece);
    return new Uint8Array(Buffer.concat(await Array.fromAsync(pieces, copy)));
  },
  bzip2(bytes: Uint8Array): Promise<Bytes> {
    const chunks: Uint8Array[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<Bytes>();
    // A stream of the oldest kind: it has events and nothing else.
    const stream = unbzip2();
    stream.on("data", (chunk: Uint8Array) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("end", () => resolve(new Uint8Array(Buffer.concat(chunks))));
    stream.end(Buffer.from(bytes));
    return promise;
  },
};
