import { NCPS_UNAVAILABLE } from "./ncps_storage.ts";
import { NIX_UNAVAILABLE } from "./nix_client.ts";
import { type Program, programsMissing } from "./program.ts";

/** Of the pages, and of the scripts around their commands. */
const PROGRAMS: readonly Program[] = [
  ...["cat", "cp", "curl", "cut", "date", "grep", "mkdir", "nginx", "prometheus", "promtool"],
  ...["readlink", "rm", "sed", "sleep", "xargs"],
] as const;

/** Why the commands of the documents cannot run here; empty when they can. */
export const DOC_PROGRAMS_MISSING = NIX_UNAVAILABLE || NCPS_UNAVAILABLE ||
  programsMissing(...PROGRAMS);
