// @ts-types="./pg.d.ts"
import pg from "pg";

/** Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html */
const AWAY_REGEXP = /^(08|57P0|53300|25006)/;

/** Serialization failure, deadlock, lock timeout. */
const CONTENTION_REGEXP = /^(40001|40P01|55P03)$/;

/** The driver's error where the server wants a password, and there is none. It has no code. */
const NO_PASSWORD_REGEXP = /^SASL: .*client password must be a/;

/** Invalid authorization, invalid password. */
const REFUSED_REGEXP = /^28/;

/** The database does not answer, shuts down, starts, or is a standby: it may be back soon. */
export function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return AWAY_REGEXP.test(error.code ?? "");
  // Anything else that is no error of the program comes from the connection.
  return error instanceof Error && !(error instanceof TypeError) && !(error instanceof RangeError);
}

/** The server wants a password, and there is none. */
export function isPasswordMissing(error: unknown): boolean {
  return error instanceof Error && NO_PASSWORD_REGEXP.test(error.message);
}

/** The server refuses the user or the password. */
export function isLoginRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && REFUSED_REGEXP.test(error.code ?? "");
}

/** The server's certificate is refused, which each Deno says in words of its own. */
export function isDistrust(error: unknown): boolean {
  return error instanceof Error && !(error instanceof pg.DatabaseError) &&
    error.message.includes("certificate");
}

/** Two transactions met. The same one succeeds when it runs again. */
export function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && CONTENTION_REGEXP.test(error.code ?? "");
}
