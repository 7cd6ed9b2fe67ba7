import type { KeptFile, NarRow } from "../../metadata/metadata_store.ts";
import type { Sha256 } from "../../nix/hash.ts";
import { type Compression, COMPRESSIONS } from "../../nix/compression.ts";
import { compressionOf, type NarName, renamedNar } from "../../nix/nar_name.ts";
import type { FileForm } from "./unpacked_nar.ts";

/** The compression of recompressed files. */
export const RECOMPRESSED = "zstd";

/** The window of the files that larder recompresses: the memory of whoever decodes them. */
export const RECOMPRESSED_WINDOW_BYTES = 4 << 20;

/** The compressions whose files larder recompresses. */
const FORMER: readonly Compression[] = (Object.keys(COMPRESSIONS) as Compression[])
  .filter((one) => one !== RECOMPRESSED);

/** True for a file that may be kept in another form. */
export function mayRecompress(name: NarName): boolean {
  return compressionOf(name) !== RECOMPRESSED;
}

/** The names of the files that a recompressed one of this name may have been made of. */
export function formerNames(name: NarName): readonly NarName[] {
  if (compressionOf(name) !== RECOMPRESSED) return [];
  return FORMER.map((compression) => renamedNar(name, compression));
}

/** Hash and size of a kept file as it came; `undefined` for those that nobody knows any more. */
export function formerFile(
  nar: Pick<NarRow, "compression" | "fileHash" | "fileSize" | "narHash" | "narSize">,
  kept: Pick<KeptFile, "form" | "fileHash" | "fileSize">,
): { readonly fileHash?: Sha256 | undefined; readonly fileSize?: number | undefined } {
  if (kept.form === undefined) return kept;
  if (nar.compression === "none") return { fileHash: nar.narHash, fileSize: nar.narSize };
  return nar;
}

/** The form of a kept file. */
export function formOf(nar: Pick<NarRow, "compression">, { form }: KeptFile): FileForm {
  if (form === undefined) return { compression: nar.compression };
  return { compression: form, isRecompressed: true };
}
