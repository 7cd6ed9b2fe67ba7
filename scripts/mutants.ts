// Plants single faults in the functions that keep the rules of docs/rules.md, one at a time. Runs the
// tests that hold the rules of that function, then the whole files that import it or have its name.
// Lists the faults that none of them noticed. It works in a copy of this folder. `--only REGEXP`:
// rules whose keeper matches; `--count N`: so many faults at most, drawn by `--seed N`;
// `--seconds N`: none begins later.
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { readRules, type Rule } from "./check_docs/rules.ts";
import { type Mutant, mutantsOf } from "./mutants/plant.ts";

/** A test that takes longer has hung: somebody waits for what the fault took away. */
const HANGS_MS = 180_000;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    count: { type: "string", default: "Infinity" },
    seconds: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
  },
});

interface Planted {
  readonly path: string;
  readonly name: string;
  readonly mutant: Mutant;
  readonly rules: readonly Rule[];
}

const root = new URL("..", import.meta.url).pathname;
const endsAtMs = performance.now() + 1_000 * Number(values.seconds);
const folder = Deno.makeTempDirSync({ prefix: "larder-mutants-" });
let [noticed, survived, untested] = [0, 0, 0];
try {
  copyTree();
  const passing = new Map<string, boolean>();
  for (const { path, name, mutant, rules } of drawn(planted())) {
    if (performance.now() > endsAtMs) break;
    const held = [];
    for (const rule of rules) {
      const key = `${rule.testPath}: ${rule.testName}`;
      const passes = passing.get(key) ?? await run(rule) === "passed";
      passing.set(key, passes);
      if (passes) held.push(rule);
    }
    const at = `${path}:${mutant.line} ${name}: ${mutant.before} -> ${mutant.after}`;
    if (held.length === 0) {
      untested++;
      console.log(`not tested here: ${at}`);
      continue;
    }
    const original = Deno.readTextFileSync(`${root}/${path}`);
    Deno.writeTextFileSync(`${folder}/${path}`, mutant.text);
    const startedAtMs = performance.now();
    const by = await noticedBy(held, path);
    Deno.writeTextFileSync(`${folder}/${path}`, original);
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
    if (by === undefined) survived++;
    else noticed++;
    console.log(
      by === undefined
        ? `SURVIVED after ${seconds} s: ${at}`
        : `noticed after ${seconds} s: ${at}, by ${by}`,
    );
  }
} finally {
  Deno.removeSync(folder, { recursive: true });
}
console.log(`${noticed} noticed, ${survived} survived, ${untested} not tested here`);
if (noticed + survived === 0) Deno.exit(1);

/** Every fault of every keeper, with the rules that the keeper keeps. */
function planted(): Planted[] {
  const { rules } = readRules(Deno.readTextFileSync(`${root}/docs/rules.md`));
  const keepers = Map.groupBy(rules, ({ keeper }) => keeper);
  const regexp = new RegExp(values.only);
  return [...keepers].flatMap(([keeper, rules]) => {
    const [path = "", name = ""] = keeper.split(":");
    if (!path.endsWith(".ts") || !regexp.test(keeper)) return [];
    const text = Deno.readTextFileSync(`${root}/${path}`);
    return mutantsOf(path, text, name).map((mutant) => ({ path, name, mutant, rules }));
  });
}

/** So many of them, in an order that the seed decides. */
function drawn(all: readonly Planted[]): readonly Planted[] {
  let state = Number(values.seed) | 1;
  const next = () => (state = Math.imul(state, 48_271) % 0x7fffffff) >>> 0;
  return all.map((one) => ({ one, order: next() }))
    .toSorted((a, b) => a.order - b.order)
    .slice(0, Number(values.count))
    .map(({ one }) => one);
}

function copyTree(): void {
  const { success } = new Deno.Command("sh", {
    args: ["-c", 'tar -c --exclude=./node_modules --exclude=./dist . | tar -x -C "$0"', folder],
    cwd: root,
  }).outputSync();
  if (!success) throw new Error(`Cannot copy ${root} to ${folder}`);
  Deno.symlinkSync(`${root}/node_modules`, `${folder}/node_modules`);
}

/** The test, or the files, that fail; `undefined`: none does. */
async function noticedBy(rules: readonly Rule[], path: string): Promise<string | undefined> {
  for (const rule of rules) {
    if (await run(rule) !== "passed") return `${rule.testPath}: ${rule.testName}`;
  }
  const files = filesOf(path);
  if (files.length === 0 || await runTests(files) === "passed") return undefined;
  return files.join(", ");
}

/** Files of tests in this process that import a file of `src`, or have its name. */
function filesOf(path: string): readonly string[] {
  const { stdout } = new Deno.Command("git", {
    args: ["grep", "-lF", `../${path}"`, "--", "tests/unit", "tests/property", "tests/contract"],
    cwd: root,
  }).outputSync();
  const files = new TextDecoder().decode(stdout).split("\n");
  const twin = path.replace(/^src/, "tests/unit").replace(/\.ts$/, "_test.ts");
  if (existsSync(`${root}/${twin}`)) files.push(twin);
  return [...new Set(files)].filter((file) => file.endsWith("_test.ts"));
}

function run({ testPath, testName }: Rule): Promise<Outcome> {
  const words = testName.split("…").map((part) => part.replace(/[/\\^$.*+?()[\]{}|]/g, "\\$&"));
  return runTests([testPath, "--filter", `/${words.join(".*")}/`]);
}

/** "none": no test has that name here. */
type Outcome = "passed" | "failed" | "none";

/** Runs tests in the copy. */
async function runTests(words: readonly string[]): Promise<Outcome> {
  const child = new Deno.Command(`${folder}/scripts/deno`, {
    args: ["task", "test", ...words],
    cwd: folder,
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const hangs = setTimeout(() => child.kill("SIGTERM"), HANGS_MS);
  const { stdout, success } = await child.output();
  clearTimeout(hangs);
  if (!success) return "failed";
  const [, passed = "0"] = /^(\d+) passed, /m.exec(new TextDecoder().decode(stdout)) ?? [];
  return passed === "0" ? "none" : "passed";
}
