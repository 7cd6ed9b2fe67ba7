import {
  hashOfBaseName,
  isBaseName,
  isStorePathHash,
  nameOfBaseName,
  STORE_DIR,
  type StorePathHash,
} from "../../nix/store_path.ts";

/** A store path as typed. */
export interface TypedPath {
  readonly hash: StorePathHash;
  /** Missing if only the hash was typed. */
  readonly name?: string;
}

/** The hash of a store path or a path below it, of its base name, or the hash itself. */
export function storePathHashIn(text: string): StorePathHash | undefined {
  return storePathIn(text)?.hash;
}

/** A store path or a path below it, a base name, or a hash. */
export function storePathIn(text: string): TypedPath | undefined {
  const trimmed = text.trim();
  const below = trimmed.startsWith(`${STORE_DIR}/`) ? trimmed.slice(STORE_DIR.length + 1) : trimmed;
  const typed = below.split("/", 1)[0] ?? "";
  if (isStorePathHash(typed)) return { hash: typed };
  if (!isBaseName(typed)) return undefined;
  return { hash: hashOfBaseName(typed), name: nameOfBaseName(typed) };
}
