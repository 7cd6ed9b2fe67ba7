import { createHash } from "node:crypto";
import type { NarRecord, NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { isSameClaim } from "../../metadata/nar_claims.ts";
import { sha256FromDigest } from "../../nix/hash.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { markedNarName, type NarName, narName } from "../../nix/nar_name.ts";
import type { Offer } from "../../upstream/narinfo_query.ts";

/**
 * The NAR row of a narinfo. Its name is the file hash, or the NAR hash where the narinfo has no
 * file hash. An uncompressed file is the NAR: its hash and size are signed, and no claim
 * beside them counts.
 */
export function narRowOf(narinfo: Narinfo): NarRow {
  const { compression, narHash, narSize, fileHash, fileSize } = narinfo;
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
 * The same row under a name that only it can have. File hash and file size are not signed: where
 * another narinfo claims the plain name for something else, one of them lies, and nobody knows
 * which before the file is here. So neither may keep the other from its NAR.
 */
export function ownNarRowOf(nar: NarRow): NarRow {
  const { narHash, narSize, fileHash = "", fileSize = "" } = nar;
  const claims = [narHash, narSize, fileHash, fileSize].join(" ");
  const digest = createHash("sha256").update(claims).digest();
  return { ...nar, name: markedNarName(nar.name, sha256FromDigest(digest)) };
}

/**
 * What the row says where its file is kept, and so verified, in place of what nobody signed.
 * `claimed` where the row is that of another NAR.
 */
export function verifiedRowOf(known: NarRecord | undefined, claimed: NarRow): NarRow {
  if (known?.kept === undefined || claimed.compression === "none") return claimed;
  if (known.narHash !== claimed.narHash || known.narSize !== claimed.narSize) return claimed;
  const { kept: _, ...row } = known;
  return row;
}

/** The NAR URL that our narinfos carry: relative, without a query. */
export function narUrlOf(name: NarName): string {
  return `nar/${name}`;
}

/** The NAR file's size as far as the narinfo tells it: uncompressed, it is that of the NAR. */
export function announcedFileSize(nar: NarRow): number | undefined {
  return nar.fileSize ?? (nar.compression === "none" ? nar.narSize : undefined);
}

/** No compression makes a file much larger than what it holds; of 0 bytes it is not known. */
export function fileSizeLimit({ narSize }: NarRow): number {
  return narSize === 0 ? Infinity : narSize + Math.ceil(narSize / 8) + 65_536;
}

/** True where a hash is known that every right file has: the NAR hash if it is uncompressed. */
export function hasKnownFileHash(nar: NarRow): boolean {
  return nar.fileHash !== undefined || nar.compression === "none";
}

/**
 * True when an upstream's narinfo says of its file what the row says. One that contradicts the row
 * has another file, or one of them lies: its file would be held against the wrong claims.
 */
export function isSameFile(narinfo: Narinfo, nar: NarRow): boolean {
  return isSameClaim(nar, narRowOf(narinfo));
}

/** Where the upstream of an offer has its NAR file. */
export function sourceOf({ upstream, narinfo }: Offer): NarSource {
  return { upstream, location: narinfo.url };
}
