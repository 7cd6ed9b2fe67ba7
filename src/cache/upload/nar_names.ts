import type { Compression } from "../../nix/compression.ts";
import { compressionOf, hashOf, type NarName, narName } from "../../nix/nar_name.ts";

/** Possible compressions of a file without an extension. Nix gives none to gzip. */
const UNNAMED: readonly Compression[] = ["none", "gzip", "zstd", "xz", "bzip2"];

/** Our names of the file that a client names so. */
export function ownNames(name: NarName): readonly NarName[] {
  if (compressionOf(name) !== "none") return [name];
  return UNNAMED.map((compression) => narName(hashOf(name), compression));
}
