import { NIX_UNAVAILABLE } from "./nix_client.ts";
import { programsMissing } from "./program.ts";

/** Why the commands of the documents cannot run here; empty when they can. */
export const DOC_PROGRAMS_MISSING = NIX_UNAVAILABLE ||
  programsMissing("curl", "nginx", "prometheus", "xz");
