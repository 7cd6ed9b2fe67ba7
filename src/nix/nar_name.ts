import { type Compression, COMPRESSIONS } from "./compression.ts";
import type { Sha256 } from "./hash.ts";
import { NIX32_ALPHABET } from "./nix32.ts";
import { isStorePathHash, type StorePathHash } from "./store_path.ts";

declare const brand: unique symbol;

/**
 * The last segment of larder's NAR URLs: 52 nix32 characters, `.nar`, an extension. A mark of 32
 * characters before `.nar` keeps NARs of several narinfos with the same hash apart.
 */
export type NarName = string & { readonly [brand]: true };

declare const stemBrand: unique symbol;

/** What all names of one NAR file begin with: a recompressed one has another ending. */
export type NarStem = string & { readonly [stemBrand]: true };

const HASH_CHARS = 52;
const MARK_CHARS = 32;
const DIGIT = `[${NIX32_ALPHABET}]`;
const NAR_NAME_REGEXP = new RegExp(
  `^[01]${DIGIT}{51}(?:-${DIGIT}{${MARK_CHARS}})?\\.nar(?:\\.[a-z0-9]{2,3})?$`,
);
const COMPRESSION_OF_ENDING: ReadonlyMap<string, Compression> = new Map(
  (Object.keys(COMPRESSIONS) as Compression[])
    .map((compression) => [endingOf(compression), compression]),
);

export function narName(sha256: Sha256, compression: Compression): NarName {
  return `${sha256}${endingOf(compression)}` as NarName;
}

/** The same name with 32 characters of `mark`. No plain hash spells such a name. */
export function markedNarName(name: NarName, mark: Sha256): NarName {
  return `${hashOf(name)}-${mark.slice(-MARK_CHARS)}${endingIn(name)}` as NarName;
}

/** `undefined` if no NAR URL of larder has this name: they use nix32 alone. */
export function parseNarName(text: string): NarName | undefined {
  if (!NAR_NAME_REGEXP.test(text)) return undefined;
  return COMPRESSION_OF_ENDING.has(endingIn(text)) ? text as NarName : undefined;
}

export function compressionOf(name: NarName): Compression {
  return COMPRESSION_OF_ENDING.get(endingIn(name)) as Compression;
}

export function hashOf(name: NarName): Sha256 {
  return name.slice(0, HASH_CHARS) as Sha256;
}

/** A NAR file as a client names it. */
export interface NarReference {
  readonly name: NarName;
  /** The store path of the NAR, where the name of another binary cache says it. */
  readonly storePathHash?: StorePathHash;
}

const OF_PATH_REGEXP = /^([^-]{32})-(.*)$/s;

/**
 * Reads the NAR names of larder, and those of other binary caches that clients remember: of
 * nix-serve (`<store path hash>-<NAR hash>.nar`) and harmonia (`<NAR hash>.nar?hash=<store path
 * hash>`). `undefined` for any other.
 */
export function parseNarReference(text: string, query = ""): NarReference | undefined {
  const [, ofPath = new URLSearchParams(query).get("hash") ?? "", rest = text] =
    OF_PATH_REGEXP.exec(text) ?? [];
  const name = parseNarName(rest);
  if (name === undefined) return undefined;
  if (isStorePathHash(ofPath)) return { name, storePathHash: ofPath };
  return rest === text ? { name } : undefined;
}

/** The name without a mark: other binary caches make no marks. */
export function plainNarName(name: NarName): NarName {
  return `${hashOf(name)}${endingIn(name)}` as NarName;
}

/** The name of the same NAR in another compression: it keeps the hash, and the mark. */
export function renamedNar(name: NarName, compression: Compression): NarName {
  return `${name.slice(0, name.indexOf("."))}${endingOf(compression)}` as NarName;
}

function endingIn(name: string): string {
  return name.slice(name.indexOf("."));
}

function endingOf(compression: Compression): string {
  return `.nar${COMPRESSIONS[compression].extension}`;
}

export function stemOf(narName: string): NarStem {
  const dot = narName.indexOf(".");
  return (dot < 0 ? narName : narName.slice(0, dot)) as NarStem;
}

/** `undefined` if no name of larder begins so. */
export function parseNarStem(text: string): NarStem | undefined {
  return parseNarName(`${text}.nar`) === undefined ? undefined : text as NarStem;
}
