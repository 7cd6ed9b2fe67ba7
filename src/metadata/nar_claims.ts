import type { NarRecord, NarRow } from "./metadata_store.ts";

/**
 * How what a narinfo says of a NAR file stands to what is known under the same NAR name.
 * `same`: nothing changes. `other-claims`: it is the same NAR, and a file hash or file size differs
 * that nobody signs and nobody has verified. `other-nar`: the signed NAR hash or size differs.
 */
export type Claim = "same" | "other-claims" | "other-nar";

/** A file that is kept was verified: what it is stands, and claims beside it do not count. */
export function claimOf(known: NarRecord, heard: NarRow): Claim {
  if (known.narHash !== heard.narHash || known.narSize !== heard.narSize) return "other-nar";
  if (known.kept !== undefined) return "same";
  const isSame = known.fileHash === heard.fileHash && known.fileSize === heard.fileSize;
  return isSame ? "same" : "other-claims";
}
