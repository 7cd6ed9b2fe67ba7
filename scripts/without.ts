// Runs tests as on machines that each lack one program: for each, the files that ask for it. Prints
// a table of counts.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ASKED_VARIABLE, isInstalled, type Program, PROGRAMS } from "../tests/support/program.ts";
import { tempFolder } from "../tests/support/temp_folder.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE = `Usage: without [--tests PATH...] [PROGRAM...]

Programs are those of tests/support/program.ts; without any, all of them.
`;

/** No test has this name. */
const NO_TEST = "/^$/";

const { programs, tests } = optionsOrExit(readOptions, USAGE);
using folder = tempFolder();
const path = linkPrograms(`${folder.path}/bin`);
const asking = await questions();
const rows: string[] = [];
const sums = [0, 0, 0];
for (const program of programs) {
  const counts = await countsWithout(program);
  rows.push(`${program.padEnd(16)} ${counts}`);
  for (const [at, count] of (counts.match(/\d+/g) ?? []).entries()) {
    sums[at] = (sums[at] ?? 0) + Number(count);
  }
}
const [passed, failed, skipped] = sums;
console.log(`\n${rows.join("\n")}\n\n${passed} passed, ${failed} failed, ${skipped} skipped`);
Deno.exitCode = failed === 0 ? 0 : 1;

function readOptions(words: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { tests: { type: "string", multiple: true, default: ["tests"] } },
    allowPositionals: true,
  });
  const all = Object.keys(PROGRAMS) as Program[];
  const unknown = positionals.filter((word) => !all.some((program) => program === word));
  if (unknown.length > 0) throw new Error(`No test asks for ${unknown.join(", ")}`);
  const programs = positionals.length === 0 ? all : positionals as Program[];
  return { programs, tests: values.tests };
}

/** The files that ask for each program: all are loaded, and none of their tests runs. */
async function questions(): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = `${folder.path}/asked`;
  Deno.writeTextFileSync(asked, "");
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-check", "--allow-all", `--filter=${NO_TEST}`, ...tests],
    env: { [ASKED_VARIABLE]: asked, REQUIRE_ALL_BACKENDS: "" },
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  const lines = new Set(Deno.readTextFileSync(asked).trimEnd().split("\n"));
  const pairs = [...lines].map((line) => line.split(" ") as [Program, string]);
  const byProgram = Map.groupBy(pairs, ([program]) => program);
  return new Map(
    [...byProgram].map(([program, pairs]) => [program, pairs.map(([, url]) => fileURLToPath(url))]),
  );
}

/** The line of counts of the files that ask for this program, where it is missing. */
async function countsWithout(program: Program): Promise<string> {
  const files = asking.get(program) ?? [];
  if (files.length === 0) return "0 passed, 0 failed, 0 skipped: no test asks for it";
  if (!isInstalled(program)) return "0 passed, 0 failed, 0 skipped: it is missing anyway";
  const link = `${path}/${program}`;
  const target = Deno.readLinkSync(link);
  Deno.removeSync(link);
  try {
    return await countsOf(files);
  } finally {
    Deno.symlinkSync(target, link);
  }
}

async function countsOf(files: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", "scripts/test.ts", ...files],
    env: { PATH: path, REQUIRE_ALL_BACKENDS: "" },
  }).output();
  const text = new TextDecoder().decode(stdout).trimEnd();
  const counts = text.split("\n").at(-1) ?? "";
  if (!/ 0 failed/.test(counts)) console.log(text);
  return counts;
}

/** Fills a folder with links to all programs on PATH. */
function linkPrograms(folder: string): string {
  Deno.mkdirSync(folder);
  for (const place of (Deno.env.get("PATH") ?? "").split(":")) {
    for (const name of namesIn(place)) {
      try {
        Deno.symlinkSync(`${place}/${name}`, `${folder}/${name}`);
      } catch (error) {
        // One further ahead on PATH has this name.
        if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      }
    }
  }
  return folder;
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch {
    return [];
  }
}
