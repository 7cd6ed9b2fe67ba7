import { createHash } from "node:crypto";
import { formatSha256, type Sha256, sha256FromDigest } from "./hash.ts";
import type { Narinfo } from "./narinfo.ts";
import { type BaseName, STORE_DIR } from "./store_path.ts";

/** The signed fields of a narinfo. */
export type Signed = Pick<Narinfo, "storePath" | "narHash" | "narSize" | "references">;

/** The text that signatures of this narinfo cover, in Nix's format 1. */
export function fingerprintOf(narinfo: Signed): string {
  const references = referencesText(narinfo.references);
  const { storePath, narHash, narSize } = narinfo;
  return `1;${storePath};${formatSha256(narHash)};${narSize};${references}`;
}

/** The SHA-256 of the fingerprint. */
export function fingerprintDigestOf(narinfo: Signed): Sha256 {
  return sha256FromDigest(createHash("sha256").update(fingerprintOf(narinfo)).digest());
}

/** Sorting this many takes as long as a check of the signature. */
const MANY_REFERENCES = 100;

/** The texts of long lists: larder verifies, compares and signs the same narinfo. */
const textsOfMany = new WeakMap<readonly BaseName[], string>();

function referencesText(references: readonly BaseName[]): string {
  if (references.length < MANY_REFERENCES) return pathsOf(references);
  const text = textsOfMany.get(references) ?? pathsOf(references);
  textsOfMany.set(references, text);
  return text;
}

function pathsOf(references: readonly BaseName[]): string {
  return sortedSet(references).map((baseName) => `${STORE_DIR}/${baseName}`).join(",");
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
