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

/** Several store paths as typed, and the words between them that are none. */
export interface TypedPaths {
  readonly paths: readonly TypedPath[];
  readonly unreadable: readonly string[];
}

/**
 * Several store paths, with blanks, line ends or nothing between them: a browser takes the line ends
 * out of what somebody pastes. `undefined` for a single word, and where none is a store path.
 */
export function storePathsIn(text: string): TypedPaths | undefined {
  const spaced = text.replaceAll(`${STORE_DIR}/`, ` ${STORE_DIR}/`);
  const words = spaced.split(/\s+/).filter((word) => word !== "");
  if (words.length < 2) return undefined;
  const read = words.map((word) => ({ word, path: storePathIn(word) }));
  const byHash = new Map(read.flatMap(({ path }) => path ? [[path.hash, path]] : []));
  if (byHash.size === 0) return undefined;
  const unreadable = read.flatMap(({ word, path }) => path === undefined ? [word] : []);
  return { paths: [...byHash.values()], unreadable: [...new Set(unreadable)] };
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
