// Builds dist/larder for this machine, or an executable for each `--target`. Deno fetches the
// runtime to embed; where it cannot, DENORT_BIN names the one of the only target.
import denoJson from "../deno.json" with { type: "json" };
import { excludedPackageFiles } from "./compile/packages.ts";
import { type Build, buildsOf } from "./compile/targets.ts";

/** File in which the executable finds its commit. */
const COMMIT_FILE = "dist/commit";

/** Loaded by name, so the compiler does not find them. */
const INCLUDED = [
  COMMIT_FILE,
  "src/cli/commands.ts",
  "src/cli/help.ts",
  "src/metadata/schema",
  "src/storage/s3/check_bucket.ts",
  "src/storage/s3/s3_access.ts",
  "src/storage/s3/s3_marks.ts",
  "src/storage/s3/s3_nar_store.ts",
  "src/storage/s3/traced_s3.ts",
  "src/base/pipe_worker.ts",
  "src/metadata/sqlite/checkpoint_worker.ts",
  "src/http/page",
  "src/app/workers/fetch_worker.ts",
  "src/app/workers/narinfo_worker.ts",
  "src/app/workers/verify_worker.ts",
  "src/app/workers/compare_worker.ts",
  "src/app/workers/encode_worker.ts",
  "src/app/workers/closures_worker.ts",
  "src/app/workers/health_worker.ts",
  "src/app/workers/ncps_worker.ts",
  "src/http/tls/relay_worker.ts",
];

const PERMISSIONS = [
  "--no-prompt",
  "--allow-net",
  "--allow-env",
  "--allow-sys=hostname,statfs,getPriority,setPriority,networkInterfaces",
  // For the nix of `larder warm`. Every other command gives it up first.
  "--allow-run",
];

/** The server narrows a grant of `/`, which on Windows would be that of one drive. */
const ALL_FILES = ["--allow-read=/", "--allow-write=/"];
const ALL_DRIVES = ["--allow-read", "--allow-write"];

/**
 * A young generation of at most 2 MiB. Answers live for microseconds: a larger one only grows
 * the process (measured peak: 208 MB to 135 MB, at 5 % of the small requests).
 */
const V8_FLAGS = "--v8-flags=--max-semi-space-size=2";

const builds = readBuilds();
const excluded = excludedPackageFiles();
Deno.exit(await compileAll());

async function compileAll(): Promise<number> {
  Deno.mkdirSync("dist", { recursive: true });
  Deno.writeTextFileSync(COMMIT_FILE, `${commitOfSources()}\n`);
  using _times = sameTimes([COMMIT_FILE, "deno.json", "main.ts", "src", "node_modules"]);
  for (const build of builds) {
    const command = new Deno.Command(Deno.execPath(), { args: argsOf(build) });
    const { code } = await command.spawn().status;
    if (code !== 0) return code;
  }
  return 0;
}

/** `LARDER_COMMIT`, for sources without their history, else the commit of git. */
function commitOfSources(): string {
  const given = Deno.env.get("LARDER_COMMIT");
  if (given) return given;
  const described = git("describe", "--always", "--abbrev=40", "--dirty", "--exclude=*");
  return described ?? "unknown";
}

/** Output of git; `undefined` outside a clone. */
function git(...args: string[]): string | undefined {
  try {
    const { success, stdout } = new Deno.Command("git", { args, stderr: "null" }).outputSync();
    return success ? new TextDecoder().decode(stdout).trim() : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Ends the process with a sentence if the arguments are wrong. */
function readBuilds(): readonly Build[] {
  try {
    const builds = buildsOf(Deno.args, denoJson.version);
    if (builds.length > 1 && Deno.env.get("DENORT_BIN")) {
      throw new Error("DENORT_BIN: is the runtime of one target, and several are to be built");
    }
    return builds;
  } catch (error) {
    console.error(`compile: ${(error as Error).message}`);
    Deno.exit(2);
  }
}

function argsOf({ triple, output }: Build): string[] {
  const hasDrives = (triple ?? Deno.build.target).includes("windows");
  return [
    "compile",
    "--no-check",
    `--output=${output}`,
    ...triple === undefined ? [] : [`--target=${triple}`],
    V8_FLAGS,
    ...PERMISSIONS,
    ...hasDrives ? ALL_DRIVES : ALL_FILES,
    ...INCLUDED.map((path) => `--include=${path}`),
    ...excluded.map((path) => `--exclude=${path}`),
    "main.ts",
  ];
}

/**
 * Gives these files and folders one time of change, as the executable holds it for each file.
 * Disposing restores the former times.
 */
function sameTimes(paths: readonly string[]): Disposable {
  const former = new Map<string, Date>();
  const set = (path: string) => {
    const { isDirectory, mtime } = Deno.lstatSync(path);
    if (isDirectory) {
      return [...Deno.readDirSync(path)].forEach(({ name }) => set(`${path}/${name}`));
    }
    if (mtime === null || Deno.lstatSync(path).isSymlink) return;
    former.set(path, mtime);
    Deno.utimeSync(path, 0, 0);
  };
  for (const path of paths) set(path);
  return {
    [Symbol.dispose]() {
      for (const [path, mtime] of former) restore(path, mtime);
    },
  };
}

/** Deno's lock files in node_modules come and go. */
function restore(path: string, mtime: Date): void {
  try {
    Deno.utimeSync(path, mtime, mtime);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
