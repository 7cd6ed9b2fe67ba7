import type { NarRow } from "./metadata_store.ts";

/**
 * True where a narinfo says of its NAR file what the row says. Nobody signs file hash and file
 * size, so narinfos that differ in them never share a row. Of an uncompressed file both are signed.
 */
export function isSameClaim(known: NarRow, heard: NarRow): boolean {
  if (known.narHash !== heard.narHash || known.narSize !== heard.narSize) return false;
  if (known.compression !== heard.compression) return false;
  if (known.compression === "none") return true;
  return known.fileHash === heard.fileHash && known.fileSize === heard.fileSize;
}
