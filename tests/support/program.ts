import { bestOfThree } from "./timed_test.ts";

/** Findings of this process. */
const MISSING = new Map<string, string>();

/**
 * Why this program cannot be run here; empty when it can. The first line of `--version` must
 * contain `marked`: a program of the same name may be another one.
 */
export function programMissing(program: string, debianPackage = program, marked = ""): string {
  const known = MISSING.get(program);
  if (known !== undefined) return known;
  const missing = findMissing(program, debianPackage, marked);
  MISSING.set(program, missing);
  return missing;
}

function findMissing(program: string, debianPackage: string, marked: string): string {
  const missing = `${program} is not installed (Debian: apt install ${debianPackage})`;
  try {
    const args = ["--version"];
    const { stdout } = new Deno.Command(program, { args, stderr: "null" }).outputSync();
    return new TextDecoder().decode(stdout).includes(marked) ? "" : missing;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return missing;
  }
}

/** Why a test cannot open a terminal here; empty when it can. */
export function terminalMissing(): string {
  const program = programMissing("script", "bsdutils", "util-linux");
  if (program !== "") return program;
  const command = "test -t 1";
  const args = ["--quiet", "--return", "--command", command, "/dev/null"];
  const { success } = new Deno.Command("script", { args, stdout: "null", stderr: "null" })
    .outputSync();
  return success ? "" : "no terminal can be opened (/dev/pts)";
}

/**
 * Registers a test. If `excuse` names a missing back end, the test is ignored, and its name gives
 * the reason. With `REQUIRE_ALL_BACKENDS` set that is an error, unless `EXCUSED_BACKENDS` names
 * that back end: CI says so, aloud, where a machine cannot have it. A scene that was too slow is
 * repeated.
 */
export function testUnless(excuse: string, name: string, fn: () => Promise<void>): void {
  if (isRequired(excuse)) {
    throw new Error(`Cannot leave out "${name}", all back ends are required: ${excuse}`);
  }
  Deno.test({
    name: name + (excuse && ` (skipped: ${excuse})`),
    ignore: excuse !== "",
    fn: () => bestOfThree(fn),
  });
}

/** Whether it is an error that a test is left out for this reason. */
export function isRequired(excuse: string): boolean {
  if (excuse === "" || !Deno.env.get("REQUIRE_ALL_BACKENDS")) return false;
  const excused = (Deno.env.get("EXCUSED_BACKENDS") ?? "").split(",");
  return !excused.some((name) => name !== "" && excuse.includes(name));
}

export interface ProgramOutcome {
  readonly code: number;
  /** The text that it wrote, to either stream. */
  readonly output: string;
}

/** Runs a program with a text on its standard input. */
export async function runWithInput(
  program: string,
  args: readonly string[],
  input: string,
): Promise<ProgramOutcome> {
  const options = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  const child = new Deno.Command(program, { args: [...args], ...options }).spawn();
  const written = new Blob([input]).stream().pipeTo(child.stdin);
  const [{ code, stdout, stderr }] = await Promise.all([child.output(), written]);
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout) + decoder.decode(stderr) };
}
