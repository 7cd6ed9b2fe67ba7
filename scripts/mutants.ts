// Plants single faults in the functions that keep the rules of docs/rules.md, one at a time. Runs the
// files of tests that import the function's file or have its name, and those that hold its rules; of
// those with real processes, the one test alone. Lists the faults that none of them noticed. It works
// in a copy of this folder. `--only REGEXP`: rules whose keeper matches; `--whole`: faults in all of
// its file; `--count N`: at most N faults, drawn by `--seed N`; `--seconds N`: none begins
// later.
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { readRules, type Rule } from "./check_docs/rules.ts";
import { type Mutant, mutantsOf } from "./mutants/plant.ts";

/** A test that takes longer has hung: somebody waits for what the fault took away. */
const HANGS_S = 180;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    whole: { type: "boolean", default: false },
    count: { type: "string", default: "Infinity" },
    seconds: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
  },
});

interface Planted {
  readonly path: string;
  /** The function that keeps a rule; `undefined`: the fault is anywhere in its file. */
  readonly name: string | undefined;
  readonly mutant: Mutant;
  /** Arguments of runs of tests: the cheapest first. */
  readonly runs: readonly Words[];
}

/** Arguments of a run of tests. */
type Words = readonly string[];

/** "none": no test has that name here. */
type Outcome = "passed" | "failed" | "none";

const root = new URL("..", import.meta.url).pathname;
const endsAtMs = performance.now() + 1_000 * Number(values.seconds);
const folder = Deno.makeTempDirSync({ prefix: "larder-mutants-" });
/** Outcomes without a fault. */
const outcomes = new Map<Words, Outcome>();
let [noticed, survived, untested] = [0, 0, 0];
try {
  copyTree();
  for (const one of drawn(planted())) {
    if (performance.now() > endsAtMs) break;
    const { path, name = "", mutant } = one;
    const startedAtMs = performance.now();
    const by = await noticedBy(one);
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
    const at = `${path}:${mutant.line} ${name}: ${mutant.before} -> ${mutant.after}`;
    if (by === "untested") untested++;
    else if (by === undefined) survived++;
    else noticed++;
    console.log(
      by === "untested"
        ? `not tested here: ${at}`
        : by === undefined
        ? `SURVIVED after ${seconds} s: ${at}`
        : `noticed after ${seconds} s: ${at}, by ${by.join(" ")}`,
    );
  }
} finally {
  Deno.removeSync(folder, { recursive: true });
}
console.log(`${noticed} noticed, ${survived} survived, ${untested} not tested here`);
if (noticed + survived === 0) Deno.exit(1);

/** Every fault of every keeper, with the tests that could notice it. */
function planted(): Planted[] {
  const { rules } = readRules(Deno.readTextFileSync(`${root}/docs/rules.md`));
  const regexp = new RegExp(values.only);
  const chosen = rules.filter(({ keeper }) => regexp.test(keeper));
  const places = Map.groupBy(chosen, ({ keeper }) => (
    values.whole ? keeper.replace(/:.*/, "") : keeper
  ));
  return [...places].flatMap(([place, rules]) => {
    const [path = "", name] = place.split(":");
    if (!path.endsWith(".ts")) return [];
    const files = filesOf(path);
    const held = Object.groupBy(rules, ({ testPath }) => (
      testPath.startsWith("tests/e2e/") ? "slow" : "quick"
    ));
    // The tests of a contract are in the files that import it.
    const quick = (held.quick ?? []).flatMap(({ testPath }) => (
      testPath.endsWith("_contract.ts") ? filesOf(testPath) : [testPath]
    )).filter((file, at, all) => all.indexOf(file) === at && !files.includes(file));
    const runs = [files, ...quick.map((file) => [file]), ...(held.slow ?? []).map(wordsOf)]
      .filter((words) => words.length > 0);
    const text = Deno.readTextFileSync(`${root}/${path}`);
    return mutantsOf(path, text, name).map((mutant) => ({ path, name, mutant, runs }));
  });
}

/** The one test: a whole file with real processes takes minutes. */
function wordsOf({ testPath, testName }: Rule): Words {
  const words = testName.split("…").map((part) => part.replace(/[/\\^$.*+?()[\]{}|]/g, "\\$&"));
  return [testPath, "--filter", `/${words.join(".*")}/`];
}

/** The first `count` of them, in an order that the seed decides. */
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

/** The run that fails with the fault and passes without it; `undefined`: none does. */
async function noticedBy(
  { path, mutant, runs }: Planted,
): Promise<Words | "untested" | undefined> {
  const original = Deno.readTextFileSync(`${root}/${path}`);
  let passed = false;
  for (const words of runs) {
    if (outcomes.get(words) === "none") continue;
    Deno.writeTextFileSync(`${folder}/${path}`, mutant.text);
    const outcome = await runTests(words);
    Deno.writeTextFileSync(`${folder}/${path}`, original);
    if (outcome === "none") outcomes.set(words, "none");
    passed ||= outcome === "passed";
    if (outcome !== "failed") continue;
    if (!outcomes.has(words)) outcomes.set(words, await runTests(words));
    if (outcomes.get(words) === "passed") return words;
  }
  return passed ? undefined : "untested";
}

/** Files of tests in this process that import a file, or have its name. */
function filesOf(path: string): Words {
  const name = path.startsWith("src/") ? `../${path}` : path.replace(/.*\//, "./");
  const { stdout } = new Deno.Command("git", {
    args: [
      "grep",
      "-lF",
      `${name}"`,
      "--",
      "tests/unit",
      "tests/property",
      "tests/contract",
      "tests/http",
    ],
    cwd: root,
  }).outputSync();
  const files = new TextDecoder().decode(stdout).split("\n");
  const twin = path.replace(/^src/, "tests/unit").replace(/\.ts$/, "_test.ts");
  if (existsSync(`${root}/${twin}`)) files.push(twin);
  return [...new Set(files)].filter((file) => file.endsWith("_test.ts"));
}

/** Runs tests in the copy, up to the first that fails. */
async function runTests(words: Words): Promise<Outcome> {
  const { stdout, success } = await new Deno.Command("timeout", {
    args: [String(HANGS_S), `${folder}/scripts/deno`, "task", "test", "--fail-fast", ...words],
    cwd: folder,
    stdout: "piped",
    stderr: "null",
  }).output();
  if (!success) return "failed";
  const [, passed = "0"] = /^(\d+) passed, /m.exec(new TextDecoder().decode(stdout)) ?? [];
  return passed === "0" ? "none" : "passed";
}
