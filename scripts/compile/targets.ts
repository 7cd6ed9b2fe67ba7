/** A platform that larder is built for. */
export interface Target {
  /** Its name in file names, and for `--target`. */
  readonly name: string;
  /** Its name for `deno compile`. */
  readonly triple: string;
}

/** Every platform that Deno has a runtime for. */
export const TARGETS: readonly Target[] = [
  { name: "x86_64-linux", triple: "x86_64-unknown-linux-gnu" },
  { name: "aarch64-linux", triple: "aarch64-unknown-linux-gnu" },
  { name: "x86_64-macos", triple: "x86_64-apple-darwin" },
  { name: "aarch64-macos", triple: "aarch64-apple-darwin" },
  { name: "x86_64-windows", triple: "x86_64-pc-windows-msvc" },
];

/** One executable to build. */
export interface Build {
  /** `undefined`: the platform of this machine. */
  readonly triple: string | undefined;
  readonly output: string;
}

/**
 * The executables that the words ask for: `dist/larder` for this machine, or one for each
 * `--target`, with version and platform in its name. `all` is every target. Throws an Error for
 * anything else.
 */
export function buildsOf(words: readonly string[], version: string): readonly Build[] {
  const builds: Build[] = [];
  for (let at = 0; at < words.length; at += 2) {
    if (words[at] !== "--target") {
      throw new Error(`${words[at]}: unknown argument, expected --target NAME`);
    }
    builds.push(...targetsOf(words[at + 1]).map((target) => buildFor(target, version)));
  }
  return builds.length === 0 ? [{ triple: undefined, output: "dist/larder" }] : builds;
}

function targetsOf(given: string | undefined): readonly Target[] {
  if (given === "all") return TARGETS;
  const found = TARGETS.filter(({ name, triple }) => given === name || given === triple);
  if (found.length > 0) return found;
  const names = TARGETS.map(({ name }) => name).join(", ");
  throw new Error(`--target: got ${given ?? "nothing"}, expected all or one of ${names}`);
}

function buildFor({ name, triple }: Target, version: string): Build {
  const suffix = name.endsWith("-windows") ? ".exe" : "";
  return { triple, output: `dist/larder-${version}-${name}${suffix}` };
}
