import type { Role } from "../message/message.ts";
import type { Route } from "../routes/router.ts";

/** A method of a route; GET includes HEAD. */
export type RouteMethod = keyof Route["methods"];

/** The role that a request needs, and the rule while no token of that role is configured. */
interface Right {
  readonly role: Role;
  /** A token of one of these roles closes it. */
  readonly closedBy: readonly Role[];
  /** Clients that may send the request while no token of `closedBy` is configured. */
  readonly before: "anybody" | "readers" | "operators" | "nobody";
  /** The last two columns in one phrase, for the printed table. */
  readonly openTo: string;
}

/** The rights. `readers`: anybody, or the holders of any token once read tokens are set. */
const RIGHTS = {
  read: {
    role: "read",
    closedBy: ["read"],
    before: "anybody",
    openTo: "anybody, without read tokens",
  },
  upload: {
    role: "write",
    closedBy: ["write", "admin"],
    before: "readers",
    openTo: "readers, without write and admin tokens",
  },
  // Nobody signs a document, so a token alone says who may upload it.
  vouch: {
    role: "write",
    closedBy: ["write", "admin"],
    before: "nobody",
    openTo: "nobody, without write and admin tokens",
  },
  manage: {
    role: "admin",
    closedBy: ["admin"],
    before: "readers",
    openTo: "readers, without admin tokens",
  },
  remove: {
    role: "admin",
    closedBy: ["read", "write", "admin"],
    before: "anybody",
    openTo: "anybody, without any token",
  },
  evict: {
    role: "admin",
    closedBy: ["admin"],
    before: "operators",
    openTo: "this machine, without admin tokens",
  },
} as const satisfies Readonly<Record<string, Right>>;

type RightName = keyof typeof RIGHTS;

export interface Permission {
  readonly route: string;
  readonly method: RouteMethod;
  /** `none`: anybody, whatever is configured. */
  readonly right: RightName | "none";
}

/** The role and the exception of a permission, for the printed table. */
export function describe(
  { right }: Permission,
): { readonly role: string; readonly openTo: string } {
  return right === "none" ? { role: "none", openTo: "anybody" } : RIGHTS[right];
}

const UPLOAD_ROUTES = [
  ["/upload/{hash}.narinfo", "upload"],
  ["/upload/nar/{name}", "upload"],
  ["/upload/{hash}.ls", "vouch"],
  ["/upload/log/{drv}", "vouch"],
  ["/upload/build-trace-v2/{drv}/{output}.doi", "vouch"],
  ["/upload/realisations/{id}.doi", "vouch"],
  ["/upload/debuginfo/{id}", "vouch"],
] as const;

/** Rights of each method of each route: the only place that says so. */
export const PERMISSIONS: readonly Permission[] = [
  { route: "/nix-cache-info", method: "GET", right: "none" },
  { route: "/healthz", method: "GET", right: "none" },
  { route: "/readyz", method: "GET", right: "none" },
  { route: "/pubkey", method: "GET", right: "read" },
  { route: "/{hash}.narinfo", method: "GET", right: "read" },
  { route: "/nar/{name}", method: "GET", right: "read" },
  { route: "/{hash}.ls", method: "GET", right: "read" },
  { route: "/log/{drv}", method: "GET", right: "read" },
  { route: "/build-trace-v2/{drv}/{output}.doi", method: "GET", right: "read" },
  { route: "/realisations/{id}.doi", method: "GET", right: "read" },
  { route: "/debuginfo/{id}", method: "GET", right: "read" },
  { route: "/upload/nix-cache-info", method: "GET", right: "none" },
  ...UPLOAD_ROUTES.flatMap(([route, right]): readonly Permission[] => [
    { route, method: "GET", right: "read" },
    { route, method: "PUT", right },
  ]),
  { route: "/metrics", method: "GET", right: "read" },
  // Both show the buttons and the clients' addresses to those alone who may manage.
  { route: "/", method: "GET", right: "read" },
  { route: "/", method: "POST", right: "read" },
  { route: "/client-config", method: "GET", right: "read" },
  { route: "/stats", method: "GET", right: "read" },
  { route: "/explain", method: "GET", right: "read" },
  // It changes nothing: its list of paths is too long for a query.
  { route: "/plan", method: "POST", right: "read" },
  { route: "/pulls", method: "GET", right: "read" },
  { route: "/pulls/{id}", method: "GET", right: "read" },
  { route: "/sign-in", method: "GET", right: "manage" },
  { route: "/pins", method: "GET", right: "manage" },
  { route: "/pins/closures", method: "GET", right: "manage" },
  { route: "/pins/names", method: "GET", right: "manage" },
  { route: "/pins/names", method: "POST", right: "manage" },
  { route: "/pins/names", method: "DELETE", right: "manage" },
  { route: "/pins/verify", method: "POST", right: "manage" },
  { route: "/pin/{hash}.narinfo", method: "POST", right: "manage" },
  { route: "/pin/{hash}.narinfo", method: "DELETE", right: "manage" },
  { route: "/page/pin", method: "POST", right: "manage" },
  { route: "/page/unpin", method: "POST", right: "manage" },
  { route: "/page/evict", method: "POST", right: "evict" },
  { route: "/gc", method: "POST", right: "evict" },
  { route: "/{hash}.narinfo", method: "DELETE", right: "remove" },
  { route: "/nar/{name}", method: "DELETE", right: "remove" },
];

/** The role or client that a request needs under one configuration. */
export type Need = { readonly role: Role } | "nothing" | "operator" | "refused";

/** Throws for a route without a row: larder serves no route that nobody has decided on. */
export function needOf(route: string, method: RouteMethod, configured: ReadonlySet<Role>): Need {
  const row = PERMISSIONS.find((one) => one.route === route && one.method === method);
  if (row === undefined) throw new Error(`Cannot find the permission for ${method} ${route}`);
  return row.right === "none" ? "nothing" : needFor(row.right, configured);
}

/** The need of a right under one configuration. */
export function needFor(right: RightName, configured: ReadonlySet<Role>): Need {
  const { role, closedBy, before }: Right = RIGHTS[right];
  if (closedBy.some((one) => configured.has(one))) return { role };
  if (before === "operators") return "operator";
  if (before === "nobody") return "refused";
  return before === "readers" ? needFor("read", configured) : "nothing";
}

/** The table of permissions in Markdown. */
export function permissionTable(): string {
  const rows = PERMISSIONS.map((permission) => {
    const { role, openTo } = describe(permission);
    return [methodsOf(permission.method), `\`${permission.route}\``, role, openTo];
  });
  const head = ["Method", "Route", "Role", "Open to"];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

/** The table of permissions as text, with the needs under the configured tokens. */
export function permissionsText(configured: ReadonlySet<Role>): string {
  const rows = PERMISSIONS.map((permission) => {
    const { method, route } = permission;
    const now = phraseOf(needOf(route, method, configured));
    return [methodsOf(method), route, describe(permission).role, now];
  });
  const all = [["METHOD", "ROUTE", "ROLE", "HERE"], ...rows];
  const widths = [0, 1, 2].map((at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all.map((row) =>
    `${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd()}\n`
  ).join("");
}

function phraseOf(need: Need): string {
  if (need === "nothing") return "anybody";
  if (need === "refused") return "nobody";
  return need === "operator" ? "anybody on this machine" : `a token of the role ${need.role}`;
}

function methodsOf(method: string): string {
  return method === "GET" ? "GET, HEAD" : method;
}
