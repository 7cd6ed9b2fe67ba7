import { createHash } from "node:crypto";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { StoredNar } from "../../storage/nar_store.ts";

/**
 * SHA-256 of a whole stored file, which is closed then. Requests are answered between its pieces:
 * each takes a quarter of a millisecond. Throws when it cannot be read.
 */
export async function contentHash(stored: StoredNar): Promise<Sha256> {
  const hash = createHash("sha256");
  for await (const piece of stored.read(0, stored.fileSize)) hash.update(piece);
  return sha256FromDigest(hash.digest());
}
