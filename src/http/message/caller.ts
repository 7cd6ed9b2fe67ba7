import type { Role } from "./role.ts";

/** The holder of a token. */
export interface Caller {
  /** Name of the token, for the log. */
  readonly name: string;
  readonly role: Role;
}
