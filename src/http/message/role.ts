/** Roles of tokens. Each role includes those before it. */
export const ROLES = ["read", "write", "admin"] as const;

export type Role = typeof ROLES[number];

/** True if a token for `has` may send a request that needs `needs`. */
export function includes(has: Role, needs: Role): boolean {
  return ROLES.indexOf(has) >= ROLES.indexOf(needs);
}

/** Options of each role's tokens. */
export const TOKEN_OPTION: Readonly<Record<Role, string>> = {
  read: "--cache-get-token",
  write: "--cache-put-token",
  admin: "--cache-admin-token",
};

/** The holder of a token. */
export interface Caller {
  /** Name of the token, for the log. */
  readonly name: string;
  readonly role: Role;
}
