import { isStorePathHash, type StorePathHash } from "../nix/store_path.ts";

/**
 * The Link header of a NAR whose bytes do not have the hash in its name: it leads to the narinfo of
 * a store path with this NAR. A larder behind this one has no other way to check them.
 */
export function linkToPath(storePathHash: StorePathHash): string {
  return `<../${storePathHash}.narinfo>; rel="describedby"`;
}

/** The store path in such a header. */
export function describedPath(link: string | null): StorePathHash | undefined {
  const [, hash = ""] = LINK_REGEXP.exec(link ?? "") ?? [];
  return isStorePathHash(hash) ? hash : undefined;
}

const LINK_REGEXP = /<\.\.\/([0-9a-z]{32})\.narinfo>; rel="describedby"/;
