import { IS_ROOT, PROGRAM_FOLDER } from "./postgres_programs.ts";
import { programsMissing } from "./program.ts";

/** Why no PostgreSQL can run here; empty when it can. */
export const postgresMissing = PROGRAM_FOLDER === undefined
  ? "PostgreSQL is not installed (Debian: apt install postgresql)"
  : IS_ROOT
  ? programsMissing("setpriv")
  : "";
