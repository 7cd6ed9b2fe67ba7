import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

/** The compressions that larder can decode, with the file extension of each. */
export const COMPRESSIONS = {
  "none": { extension: "" },
  "xz": { extension: ".xz" },
  "zstd": { extension: ".zst" },
  "gzip": { extension: ".gz" },
  "bzip2": { extension: ".bz2" },
  "br": { extension: ".br" },
} as const;

export type Compression = keyof typeof COMPRESSIONS;

/** The first bytes of compressed files. Brotli has none. */
const MAGICS: readonly (readonly [Compression, readonly number[]])[] = [
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
  ["gzip", [0x1f, 0x8b]],
  ["bzip2", [0x42, 0x5a, 0x68]],
];

/** The leading bytes of a file that show its compression. */
export const MAGIC_BYTES = 5;

/** The compression of a file that begins so: "none" if no compressor writes that. */
export function compressionOfMagic(bytes: Uint8Array): Compression {
  const found = MAGICS.find(([, magic]) => magic.every((byte, at) => bytes[at] === byte));
  return found?.[0] ?? "none";
}

/**
 * Reads the value of a narinfo's `Compression` line. A missing or empty one means bzip2:
 * Nix's rule. Throws "corrupt" for a name outside the table.
 */
export function parseCompression(text: string | undefined): Compression {
  if (text === undefined || text === "") return "bzip2";
  if (Object.hasOwn(COMPRESSIONS, text)) return text as Compression;
  throw new Failure("corrupt", `Cannot read ${excerpt(text)} as a compression`);
}
