import { createHash } from "node:crypto";
import { formatSha256, type Sha256, sha256FromDigest } from "./hash.ts";
import type { Narinfo } from "./narinfo.ts";
import { type BaseName, STORE_DIR } from "./store_path.ts";

/** The signed fields of a narinfo. */
export type Signed = Pick<Narinfo, "storePath" | "narHash" | "narSize" | "references">;

/** The text that signatures of this narinfo cover, in Nix's format 1. */
export function fingerprintOf(narinfo: Signed): string {
  const references = sortedSet(narinfo.references)
    .map((baseName) => `${STORE_DIR}/${baseName}`)
    .join(",");
  const { storePath, narHash, narSize } = narinfo;
  return `1;${storePath};${formatSha256(narHash)};${narSize};${references}`;
}

/** The SHA-256 of the fingerprint. */
export function fingerprintDigestOf(narinfo: Signed): Sha256 {
  return sha256FromDigest(createHash("sha256").update(fingerprintOf(narinfo)).digest());
}

/**
 * Nix reads references into a set. So its fingerprint has them sorted and unique, whatever the
 * narinfo's order.
 */
function sortedSet(references: readonly BaseName[]): readonly BaseName[] {
  for (let at = 1; at < references.length; at++) {
    const previous = references[at - 1];
    const reference = references[at];
    if (previous === undefined || reference === undefined || previous >= reference) {
      return [...new Set(references)].sort();
    }
  }
  return references;
}
