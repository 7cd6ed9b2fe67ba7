import type { KeptFile, NarRecord } from "../../metadata/metadata_store.ts";
import { formatSha256 } from "../../nix/hash.ts";
import { renamedNar } from "../../nix/nar_name.ts";
import { narUrlOf } from "../nar/nar_naming.ts";
import { RECOMPRESSED } from "./recompressed.ts";

/** The lines about the NAR file. No signature covers them. */
const FILE_LINE_REGEXP = /^(?:URL|Compression|FileHash|FileSize): .*\n/gm;

/** The text of a narinfo, with the lines of the file that larder keeps of its NAR. */
export function asKept(text: string, nar: NarRecord): string {
  const { name, kept } = nar;
  if (kept === undefined || isClaimed(nar, kept)) return text;
  const { form = nar.compression, fileHash, fileSize } = kept;
  const lines = `URL: ${narUrlOf(renamedNar(name, form))}\nCompression: ${form}\n` +
    `FileHash: ${formatSha256(fileHash)}\nFileSize: ${fileSize}\n`;
  return text.replace(FILE_LINE_REGEXP, (line) => line.startsWith("URL") ? lines : "");
}

/** True for the file of the narinfo's claims. That of an upstream's form of the NAR has none. */
function isClaimed(
  { compression, fileHash: claimedHash, fileSize: claimedSize }: NarRecord,
  { form, fileHash, fileSize }: KeptFile,
): boolean {
  if (form !== undefined) return false;
  if (claimedHash === undefined && compression === RECOMPRESSED) return false;
  return fileHash === (claimedHash ?? fileHash) && fileSize === (claimedSize ?? fileSize);
}
