import type { NarRow } from "./metadata_store.ts";

/**
 * True where a narinfo agrees with the row about its NAR file. File hash and size are unsigned, so
 * narinfos that differ in them never share a row. Uncompressed, both are signed.
 */
export function isSameClaim(known: NarRow, claimed: NarRow): boolean {
  if (known.narHash !== claimed.narHash || known.narSize !== claimed.narSize) return false;
  if (known.compression !== claimed.compression) return false;
  if (known.compression === "none") return true;
  return known.fileHash === claimed.fileHash && known.fileSize === claimed.fileSize;
}
