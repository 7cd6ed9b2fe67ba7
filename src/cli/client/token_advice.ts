import { STATUS_CODES } from "node:http";
import { describe, PERMISSIONS } from "../../http/access/permissions.ts";
import { type Role, ROLES } from "../../http/message/role.ts";

/** A request that the server refused with 401 or 403. */
export interface RefusedByToken {
  readonly method: string;
  readonly path: string;
  readonly status: 401 | 403;
  /** The `WWW-Authenticate` header. */
  readonly challenge: string | null;
  readonly hasToken: boolean;
}

const WAYS = "--token-file PATH, or set LARDER_TOKEN";

/** One sentence on which token to set. */
export function tokenAdvice(refused: RefusedByToken): string {
  const { status, challenge, hasToken } = refused;
  const phrase = `${status} ${STATUS_CODES[status]}`;
  const missing = missingRole(challenge);
  if (missing !== undefined) {
    return `this token lacks the role ${missing} (${phrase}): give ${
      tokenOf(missing)
    } with ${WAYS}`;
  }
  if (!hasToken) {
    return `the server wants ${tokenOf(neededRole(refused))} (${phrase}): give ${WAYS}`;
  }
  if (status === 403) return `the server does not accept this token (${phrase})`;
  const needed = tokenOf(neededRole(refused));
  return `the server does not know this token (${phrase}): give ${needed} with ${WAYS}`;
}

/** The role that a valid token lacks, by the server's `WWW-Authenticate`. */
export function missingRole(challenge: string | null): Role | undefined {
  return ROLES.find((role) => challenge?.includes(`scope="${role}"`));
}

function neededRole({ method, path }: RefusedByToken): Role | undefined {
  const [bare = ""] = path.split("?");
  const row = PERMISSIONS.find((one) => one.method === method && patternOf(one.route).test(bare));
  return ROLES.find((role) => row && describe(row).role === role);
}

/** `/pin/{hash}.narinfo` → any path of that form. */
function patternOf(route: string): RegExp {
  const literal = route.split(/\{[^}]*\}/).map((text) => RegExp.escape(text));
  return new RegExp(`^${literal.join("[^/]*")}$`);
}

function tokenOf(role: Role | undefined): string {
  if (role === undefined) return "a token";
  return `${role === "admin" ? "an" : "a"} ${role} token`;
}
