import { tempFolder } from "./temp_folder.ts";

/** The runtime for `deno compile`; without one it would have to be downloaded. */
export const DENORT = Deno.env.get("DENORT_BIN") || undefined;

/** Why nothing can be compiled here; empty when it can. */
export const NO_DENORT = DENORT === undefined ? "DENORT_BIN names no runtime to embed" : "";

const SOURCES = ["deno.json", "deno.lock", "main.ts", "scripts", "src", "node_modules"];

export interface Compiled extends Disposable {
  /** The folder of the sources, which may take more files. */
  readonly folder: string;
  readonly executable: string;
}

/** Compiles a copy of the sources in a folder of another name, around the runtime at `denort`. */
export function compileCopy(denort = DENORT ?? ""): Compiled {
  const temporary = tempFolder();
  const folder = `${temporary.path}/some-other-folder`;
  Deno.mkdirSync(folder);
  Deno.chmodSync(temporary.path, 0o755);
  run("cp", ["-R", ...SOURCES, folder], ".");
  run(Deno.execPath(), ["run", "-A", "--cached-only", "scripts/compile.ts"], folder, denort);
  return {
    folder,
    executable: `${folder}/dist/larder`,
    [Symbol.dispose]: () => temporary[Symbol.dispose](),
  };
}

function run(program: string, args: string[], cwd: string, denort = ""): void {
  // The copy has no history.
  const commit = denort === "" ? "" : Deno.readTextFileSync("dist/commit").trim();
  const env = { DENORT_BIN: denort, LARDER_COMMIT: commit, NO_COLOR: "1" };
  const { success, stderr } = new Deno.Command(program, { args, cwd, env }).outputSync();
  if (!success) throw new Error(`Cannot run ${program}: ${new TextDecoder().decode(stderr)}`);
}
