import type { Role } from "./role.ts";

/** The holder of a token. */
export interface Caller {
  /** For the log. */
  readonly name: string;
  readonly role: Role;
}
