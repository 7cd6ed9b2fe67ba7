import { Failure } from "../base/failure.ts";
import { excerpt } from "./excerpt.ts";

declare const storePathHashBrand: unique symbol;
declare const baseNameBrand: unique symbol;

/** The 32 nix32 characters in front of a store path's name. */
export type StorePathHash = string & { readonly [storePathHashBrand]: true };

/** A store path without the store directory: `<store path hash>-<name>`. */
export type BaseName = string & { readonly [baseNameBrand]: true };

export const STORE_DIR = "/nix/store";

const HASH_CHARS = 32;
const STORE_PATH_HASH_REGEXP = /^[0-9abcdfghijklmnpqrsvwxyz]{32}$/;
// 211 is Nix's limit: with the hash, "-", and ".lock" or ".drv.chroot" it stays below 255.
const BASE_NAME_REGEXP = /^[0-9abcdfghijklmnpqrsvwxyz]{32}-[0-9A-Za-z+\-._?=]{1,211}$/;

export function isStorePathHash(text: string): text is StorePathHash {
  return STORE_PATH_HASH_REGEXP.test(text);
}

export function isBaseName(text: string): text is BaseName {
  return BASE_NAME_REGEXP.test(text);
}

/** Throws "bad-request" for anything but a hash, "-" and a name Nix allows. */
export function parseBaseName(text: string): BaseName {
  if (isBaseName(text)) return text;
  throw new Failure("bad-request", `Cannot read ${excerpt(text)} as a base name`);
}

export function hashOfBaseName(baseName: BaseName): StorePathHash {
  return baseName.slice(0, HASH_CHARS) as StorePathHash;
}

/** The part behind the hash, such as `hello-2.12`. */
export function nameOfBaseName(baseName: BaseName): string {
  return baseName.slice(HASH_CHARS + 1);
}

/** The base name of a full store path. Throws "bad-request" for any other path. */
export function parseStorePath(text: string): BaseName {
  if (text.startsWith(`${STORE_DIR}/`)) {
    const baseName = text.slice(STORE_DIR.length + 1);
    if (isBaseName(baseName)) return baseName;
  }
  throw new Failure("bad-request", `Cannot read ${excerpt(text)} as a store path`);
}
