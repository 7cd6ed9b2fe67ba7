import { type Compression, COMPRESSIONS } from "./compression.ts";
import type { Sha256 } from "./hash.ts";

declare const brand: unique symbol;

/** The last segment of our own NAR URLs: 52 nix32 characters, `.nar`, an extension. */
export type NarName = string & { readonly [brand]: true };

const HASH_CHARS = 52;
const NAR_NAME_REGEXP = /^[01][0-9abcdfghijklmnpqrsvwxyz]{51}\.nar(?:\.[a-z0-9]{2,3})?$/;
const COMPRESSION_OF_ENDING: ReadonlyMap<string, Compression> = new Map(
  (Object.keys(COMPRESSIONS) as Compression[])
    .map((compression) => [endingOf(compression), compression]),
);

export function narName(sha256: Sha256, compression: Compression): NarName {
  return `${sha256}${endingOf(compression)}` as NarName;
}

/** `undefined` means that no NAR URL of ours has this name: ours are spelled in nix32. */
export function parseNarName(text: string): NarName | undefined {
  if (!NAR_NAME_REGEXP.test(text)) return undefined;
  return COMPRESSION_OF_ENDING.has(text.slice(HASH_CHARS)) ? text as NarName : undefined;
}

export function compressionOf(name: NarName): Compression {
  return COMPRESSION_OF_ENDING.get(name.slice(HASH_CHARS)) as Compression;
}

export function hashOf(name: NarName): Sha256 {
  return name.slice(0, HASH_CHARS) as Sha256;
}

function endingOf(compression: Compression): string {
  return `.nar${COMPRESSIONS[compression].extension}`;
}
