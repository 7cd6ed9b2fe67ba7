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

type Magic = readonly (number | "any")[];

/** "BZh" and a level; the text of a log might begin so. */
const BZIP2_HEADER: Magic = [0x42, 0x5a, 0x68, "any"];

/** The first bytes of compressed files. No text begins so. Brotli has none. */
const MAGICS: readonly (readonly [Exclude<Compression, "none">, Magic])[] = [
  ["xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ["zstd", [0x28, 0xb5, 0x2f, 0xfd]],
  ["gzip", [0x1f, 0x8b]],
  // Then comes a block, or the end.
  ["bzip2", [...BZIP2_HEADER, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59]],
  ["bzip2", [...BZIP2_HEADER, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90]],
];

/** Compressions of Nix that larder cannot decode. */
const UNSUPPORTED_MAGICS: readonly (readonly [name: string, readonly number[]])[] = [
  ["lzma", [0x5d, 0x00, 0x00]],
  ["lzip", [0x4c, 0x5a, 0x49, 0x50]],
  ["lz4", [0x04, 0x22, 0x4d, 0x18]],
];

/** The leading bytes of a file that show its compression. */
export const MAGIC_BYTES = 10;

/** The compression of a file that begins so, where larder cannot decode it. */
export function unsupportedMagic(bytes: Uint8Array): string | undefined {
  const isBegin = (magic: readonly number[]) => magic.every((byte, at) => bytes[at] === byte);
  return UNSUPPORTED_MAGICS.find(([, magic]) => isBegin(magic))?.[0];
}

/** The compression of a file that begins so: "none" if no compressor writes that. */
export function compressionOfMagic(bytes: Uint8Array): Compression {
  const found = MAGICS.find(([, magic]) => (
    bytes.length >= magic.length &&
    magic.every((byte, at) => byte === "any" || bytes[at] === byte)
  ));
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
