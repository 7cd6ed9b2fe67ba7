import type { NarRow } from "../metadata/metadata_store.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import { type NarName, narName } from "../nix/nar_name.ts";

/**
 * The NAR row of a narinfo, and what to fall back to. Its name is the file hash, or the NAR hash
 * where the narinfo has no file hash. The file hash is not signed: where that name already stands
 * for another NAR, one of the two lies, and the newcomer gets the name of its signed NAR hash.
 */
export function narRowsOf(narinfo: Narinfo): readonly [NarRow, NarRow?] {
  const { compression, narHash, narSize, fileHash, fileSize } = narinfo;
  const row = (name: NarName): NarRow => ({
    name,
    compression,
    narHash,
    narSize,
    ...(fileHash === undefined ? {} : { fileHash }),
    ...(fileSize === undefined ? {} : { fileSize }),
  });
  const byNarHash = row(narName(narHash, compression));
  return fileHash === undefined ? [byNarHash] : [row(narName(fileHash, compression)), byNarHash];
}

/** The NAR URL that our narinfos carry: relative, without a query. */
export function narUrlOf(name: NarName): string {
  return `nar/${name}`;
}

/** The NAR file's size as far as the narinfo tells it: uncompressed, it is that of the NAR. */
export function announcedFileSize(nar: NarRow): number | undefined {
  return nar.fileSize ?? (nar.compression === "none" ? nar.narSize : undefined);
}

/** True where a hash is known that every right file has: the NAR hash if it is uncompressed. */
export function hasKnownFileHash(nar: NarRow): boolean {
  return nar.fileHash !== undefined || nar.compression === "none";
}

/** True when both lead to NAR files that either can be asked for. */
export function isSameFile(a: NarFile, b: NarFile): boolean {
  return a.narHash === b.narHash && a.narSize === b.narSize && a.compression === b.compression &&
    (a.compression === "none" || a.fileHash === b.fileHash);
}

type NarFile = Pick<NarRow, "narHash" | "narSize" | "compression" | "fileHash">;
