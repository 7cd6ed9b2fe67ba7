import {
  hashOfBaseName,
  isBaseName,
  isStorePathHash,
  STORE_DIR,
  type StorePathHash,
} from "../../nix/store_path.ts";

/** The hash of a store path or a path below it, of its base name, or the hash itself. */
export function storePathHashIn(text: string): StorePathHash | undefined {
  const trimmed = text.trim();
  const below = trimmed.startsWith(`${STORE_DIR}/`) ? trimmed.slice(STORE_DIR.length + 1) : trimmed;
  const name = below.split("/", 1)[0] ?? "";
  if (isStorePathHash(name)) return name;
  return isBaseName(name) ? hashOfBaseName(name) : undefined;
}
