import { createHash } from "node:crypto";
import {
  isSameClaim,
  type NarRecord,
  type NarRow,
  type NarSource,
} from "../../metadata/metadata_store.ts";
import { type FileHash, sha256FromDigest } from "../../nix/hash.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import {
  compressionOf,
  hashOf,
  markedNarName,
  type NarName,
  narName,
  parseNarName,
} from "../../nix/nar_name.ts";
import type { Offer } from "../../upstream/narinfo_query.ts";

/**
 * The NAR row of a narinfo. Its name is the file hash, else the NAR hash. An uncompressed file is
 * the NAR: its hash and size are signed, and override other claims.
 */
export function narRowOf(narinfo: Narinfo): NarRow {
  const { compression, narHash, narSize, fileHash, fileSize } = narinfo;
  const recompressed = recompressedName(narinfo);
  if (recompressed !== undefined) return { name: recompressed, compression, narHash, narSize };
  const isNar = compression === "none";
  const hasHash = fileHash !== undefined && (!isNar || fileHash === `${narHash}`);
  const hasSize = fileSize !== undefined && (!isNar || fileSize === narSize);
  return {
    name: narName(hasHash ? fileHash : narHash, compression),
    compression,
    narHash,
    narSize,
    ...(hasHash ? { fileHash } : {}),
    ...(hasSize ? { fileSize } : {}),
  };
}

/**
 * The name of a file that an upstream has recompressed: it has the hash of the file that this one
 * was made of. The upstream may lose it, and make another, so that its hash and size are no claims.
 */
function recompressedName({ url, compression, fileHash }: Narinfo): NarName | undefined {
  if (compression !== "zstd" || fileHash === undefined) return undefined;
  const name = nameInUrl(url);
  if (name === undefined || compressionOf(name) !== compression) return undefined;
  return hashOf(name) === `${fileHash}` ? undefined : name;
}

/** The NAR name in a NAR URL of larder's form. */
export function nameInUrl(url: string): NarName | undefined {
  return parseNarName(url.slice(url.lastIndexOf("/") + 1));
}

/**
 * The same row under a name of its own. File hash and file size are not signed: where another
 * narinfo contradicts them, one of the two lies. Only the file can tell which, so neither may take
 * the plain name from the other.
 */
export function ownNarRowOf(nar: NarRow): NarRow {
  const { narHash, narSize, fileHash = "", fileSize = "" } = nar;
  const claims = [narHash, narSize, fileHash, fileSize].join(" ");
  const digest = createHash("sha256").update(claims).digest();
  return { ...nar, name: markedNarName(nar.name, sha256FromDigest(digest)) };
}

/**
 * The row with verified values in place of unsigned ones, where its file is kept. `claimed` where
 * the known row is that of another NAR.
 */
export function verifiedRowOf(known: NarRecord | undefined, claimed: NarRow): NarRow {
  if (known?.kept === undefined || claimed.compression === "none") return claimed;
  if (known.narHash !== claimed.narHash || known.narSize !== claimed.narSize) return claimed;
  const { kept: _, ...row } = known;
  return row;
}

/** The NAR URL of our narinfos: relative, without a query. */
export function narUrlOf(name: NarName): string {
  return `nar/${name}`;
}

/** The NAR file's size by its narinfo; uncompressed, it is the NAR's. */
export function announcedFileSize(
  nar: Pick<NarRow, "fileSize" | "compression" | "narSize">,
): number | undefined {
  return nar.fileSize ?? (nar.compression === "none" ? nar.narSize : undefined);
}

/**
 * The largest possible NAR file: no compression adds much, but a larder that is the upstream may
 * speak bzip2. `narSize` 0 means unknown.
 */
export function fileSizeLimit({ narSize, compression }: NarRow): number {
  const added = narSize / (compression === "bzip2" ? 2 : 8);
  return narSize === 0 ? Infinity : narSize + Math.ceil(added) + 65_536;
}

/** True where a hash of the file is known: for an uncompressed file it is the NAR hash. */
export function hasKnownFileHash(nar: NarRow): boolean {
  return nar.fileHash !== undefined || nar.compression === "none";
}

/**
 * True when an upstream's narinfo agrees with the row about its file. Otherwise it has another
 * file, or one of them lies: the wrong claims would judge its file.
 */
export function isSameFile(narinfo: Narinfo, nar: NarRow): boolean {
  return isSameClaim(nar, narRowOf(narinfo));
}

/**
 * True when an upstream's narinfo leads to the row's file: it agrees with the row, or both have the
 * same hash of the file. A file of that hash has one size, so that one of two sizes lies.
 */
export function leadsToFile(narinfo: Narinfo, nar: NarRow): boolean {
  const claimed = narRowOf(narinfo);
  if (isSameClaim(nar, claimed)) return true;
  return nar.fileHash !== undefined && isSameClaim(withoutSize(nar), withoutSize(claimed));
}

/**
 * The row for any file of the NAR: only what is signed is left. `undefined` where the size is
 * signed, or unknown.
 */
export function signedRowOf(nar: NarRow): NarRow | undefined {
  const { fileHash: _, ...signed } = withoutSize(nar);
  return nar.fileSize !== undefined && nar.compression !== "none" ? signed : undefined;
}

/** The entity tag of a file of this size: the claimed hash, unless it is another file. */
export function tagOf(nar: NarRow, fileSize: number | undefined): FileHash | undefined {
  return (nar.fileSize ?? fileSize) === (fileSize ?? nar.fileSize) ? nar.fileHash : undefined;
}

function withoutSize({ fileSize: _, ...nar }: NarRow): NarRow {
  return nar;
}

/** The location of the NAR file at the upstream of an offer. */
export function sourceOf({ upstream, narinfo }: Offer): NarSource {
  return { upstream, location: narinfo.url };
}
