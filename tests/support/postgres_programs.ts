import { procText } from "./proc_text.ts";

/** Of `nobody`: PostgreSQL refuses to run as root. */
export const UNPRIVILEGED_ID = 65_534;

/** `undefined` without PostgreSQL. */
export const PROGRAM_FOLDER = programFolder();
export const IS_ROOT = PROGRAM_FOLDER !== undefined && isRoot();

/** Copies a database that nobody uses, on the same server. */
export function copyDatabase(from: string, to: string): void {
  const sql = `CREATE DATABASE ${databaseIn(to)} TEMPLATE ${databaseIn(from)}`;
  queryPostgres(new URL("/postgres", from).href, sql);
}

/** The rows of a query, as psql prints them: without heads, with a bar between columns. */
export function queryPostgres(url: string, sql: string): readonly string[] {
  const output = runPostgres("psql", ["-d", url, "-qAtX", "-c", sql]);
  return output.split("\n").filter((line) => line !== "");
}

/** The name of a URL's database. */
export function databaseIn(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** Runs a program of PostgreSQL. Returns the output of psql. */
export function runPostgres(program: string, args: readonly string[]): string {
  const id = `${UNPRIVILEGED_ID}`;
  const words = [`${PROGRAM_FOLDER}/${program}`, ...args];
  const unprivileged = ["setpriv", `--reuid=${id}`, `--regid=${id}`, "--clear-groups", ...words];
  const [command = "", ...rest] = IS_ROOT ? unprivileged : words;
  // A server would keep a pipe open.
  const stdout = program === "psql" ? "piped" : "null";
  const options = { args: rest, cwd: "/", stdin: "null", stdout, stderr: "piped" } as const;
  const ran = new Deno.Command(command, options).outputSync();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (!ran.success) throw new Error(`Cannot run ${program}: ${text(ran.stderr)}`);
  return stdout === "piped" ? text(ran.stdout) : "";
}

/** Not by Deno's own: a script that imports this file may lack `--allow-sys`. */
function isRoot(): boolean {
  return /^Uid:\s+0\s/m.test(procText("/proc/self/status"));
}

/** The newest release on this machine. */
function programFolder(): string | undefined {
  const root = "/usr/lib/postgresql";
  try {
    const releases = [...Deno.readDirSync(root)].map(({ name }) => Number(name));
    return `${root}/${Math.max(...releases)}/bin`;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return undefined;
  }
}
