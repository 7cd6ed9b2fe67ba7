import { NIX_UNAVAILABLE } from "./nix_client.ts";
import { programMissing } from "./program.ts";

/** Why the commands of the documents cannot run here; empty when they can. */
export const DOC_PROGRAMS_MISSING = NIX_UNAVAILABLE || programMissing("curl") ||
  programMissing("nginx") || programMissing("prometheus") || programMissing("xz", "xz-utils");
