import type { KeptFile, NarRecord } from "../../metadata/metadata_store.ts";
import { formatSha256, type Sha256 } from "../../nix/hash.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { hashOf, type NarName, narName as plainName, parseNarName } from "../../nix/nar_name.ts";
import { formerFile } from "../forms/recompressed.ts";
import { ownNarRowOf } from "../nar/nar_naming.ts";
import { ownNames } from "./nar_names.ts";
import { UploadRefused } from "./upload_outcome.ts";

/** A kept NAR file, and its row. */
export interface UploadedNar {
  readonly nar: NarRecord;
  readonly kept: KeptFile;
}

/** Finds a file that is kept and undamaged. */
export type FindKeptNar = (narName: NarName) => Promise<UploadedNar | undefined>;

const URL_REGEXP = /^nar\/([^/?#]+)$/;

/**
 * The kept NAR file of an uploaded narinfo. Throws UploadRefused where it is not here, or where the
 * narinfo contradicts the measured facts.
 */
export async function uploadedNar(narinfo: Narinfo, find: FindKeptNar): Promise<UploadedNar> {
  const name = parseNarName(URL_REGEXP.exec(narinfo.url)?.[1] ?? "");
  if (name === undefined) {
    throw refused("expected URL: nar/ and the name of an uploaded NAR file");
  }
  for (const candidate of candidates(narinfo, name)) {
    const found = await find(candidate);
    if (found === undefined) continue;
    if (formerFile(found.nar, found.kept).fileHash !== hashOf(name)) continue;
    check(narinfo, found);
    return found;
  }
  throw refused(`expected ${narinfo.url} before its narinfo, and it is not here`);
}

/** Our names of the file, and the one that a NAR gets where another narinfo claims those. */
function candidates(narinfo: Narinfo, url: NarName): readonly NarName[] {
  const { narHash, narSize, fileHash, fileSize, compression } = narinfo;
  if (fileHash === undefined || fileSize === undefined) return ownNames(url);
  const name = plainName(hashOf(url), compression);
  const row = { name, compression, narHash, narSize, fileHash, fileSize };
  return [...ownNames(url), ownNarRowOf(row).name];
}

function check(narinfo: Narinfo, { nar, kept }: UploadedNar): void {
  const { compression, fileHash, fileSize, narHash, narSize } = narinfo;
  const former = formerFile(nar, kept);
  const facts: readonly (readonly [field: string, said: unknown, found: unknown])[] = [
    ["Compression", compression, nar.compression],
    ["FileHash", shown(fileHash ?? former.fileHash), shown(former.fileHash)],
    ["FileSize", fileSize ?? former.fileSize, former.fileSize],
    ["NarHash", formatSha256(narHash), formatSha256(nar.narHash)],
    ["NarSize", narSize, nar.narSize],
  ];
  for (const [field, said, found] of facts) {
    if (said !== found) throw refused(`expected ${field}: ${found}, got ${said}`);
  }
}

function refused(line: string): UploadRefused {
  return new UploadRefused("invalid", line);
}

function shown(hash: Sha256 | undefined): string | undefined {
  return hash && formatSha256(hash);
}
