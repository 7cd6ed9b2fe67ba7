import type { NarRow } from "./metadata_store.ts";

/**
 * True where a narinfo agrees with the row about its NAR file. File hash and size are unsigned, so
 * narinfos that differ in them never share a row. Uncompressed, both are signed.
 */
export function isSameClaim(known: NarRow, heard: NarRow): boolean {
  if (known.narHash !== heard.narHash || known.narSize !== heard.narSize) return false;
  if (known.compression !== heard.compression) return false;
  if (known.compression === "none") return true;
  return known.fileHash === heard.fileHash && known.fileSize === heard.fileSize;
}
