// The gate: all checks of a commit, the quickest first. `--without-tests` omits the last step, for
// CI, which runs it separately.

/** All code of the project. */
const CODE = ["main.ts", "src", "tests", "scripts"];

const STEPS: readonly (readonly [name: string, ...args: string[]])[] = [
  ["format", "fmt", "--check", "--quiet", "deno.json", ...CODE],
  ["lint", "lint", "--quiet", ...CODE],
  ["types", "check", "--quiet", ...CODE],
  ["layers", "run", "--quiet", "--allow-read", "--allow-env", "scripts/check_layers.ts"],
  ["generated documents", "run", "--quiet", "--allow-read", "scripts/gen.ts", "--check"],
  ["documents", "run", "--quiet", "--allow-read", "--allow-env", "scripts/check_docs.ts"],
  ["tests", "run", "--quiet", "--allow-all", "scripts/test.ts"],
];

const steps = Deno.args.includes("--without-tests") ? STEPS.slice(0, -1) : STEPS;

for (const [name, ...args] of steps) {
  const startedAtMs = performance.now();
  const { code } = await new Deno.Command(Deno.execPath(), { args }).spawn().status;
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  console.error(`${code === 0 ? "ok" : "FAILED"}: ${name} (${seconds} s)`);
  if (code !== 0) Deno.exit(1);
}
