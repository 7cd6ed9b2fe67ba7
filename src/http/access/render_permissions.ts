import type { Role } from "../message/role.ts";
import { describe, type Need, needOf, PERMISSIONS } from "./permissions.ts";

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
