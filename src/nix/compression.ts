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

/**
 * Reads the value of a narinfo's `Compression` line. A missing or empty one means bzip2:
 * Nix's rule. Throws "corrupt" for a name outside the table.
 */
export function parseCompression(text: string | undefined): Compression {
  if (text === undefined || text === "") return "bzip2";
  if (Object.hasOwn(COMPRESSIONS, text)) return text as Compression;
  throw new Failure("corrupt", `Cannot read ${excerpt(text)} as a compression`);
}
