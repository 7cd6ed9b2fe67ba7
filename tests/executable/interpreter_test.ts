import { compileCopy, DENORT, NO_DENORT } from "../support/compiled.ts";
import { executableTest, NO_OWN_ROOT, withinRoot } from "../support/executable.ts";
import { programsMissing } from "../support/program.ts";
import { neededFiles } from "../support/needed_files.ts";
import { pullTwice } from "../support/pulled_twice.ts";
import { tempFolder } from "../support/temp_folder.ts";

const EXCUSE = NO_DENORT || NO_OWN_ROOT || programsMissing("patchelf", "ldd", "cp");

executableTest(
  EXCUSE,
  "executable: compiled around a runtime with another interpreter it serves without /lib64",
  async (executable) => {
    using root = tempFolder();
    // As a store path of Nix: libraries and interpreter in one folder that is nowhere standard.
    const libraries = "/nix/store/0123-glibc/lib";
    using patched = patchedRuntime(libraries);
    using compiled = compileCopy(patched.path);
    Deno.mkdirSync(root.path + libraries, { recursive: true });
    for (const file of neededFiles(DENORT ?? "")) {
      Deno.copyFileSync(file, `${root.path}${libraries}/${file.split("/").at(-1)}`);
    }
    Deno.renameSync(compiled.executable, `${root.path}/larder`);

    // startLarder runs the executable by its own path.
    Deno.mkdirSync(root.path + executable.replace(/\/[^/]*$/, ""), { recursive: true });
    Deno.symlinkSync("/larder", root.path + executable);
    Deno.mkdirSync(`${root.path}/storage`);

    await pullTwice({ storage: "/storage", through: withinRoot(root.path) });
  },
);

/** The runtime, as nixpkgs has it: with interpreter and libraries in one folder. */
function patchedRuntime(libraries: string): Disposable & { readonly path: string } {
  const folder = tempFolder();
  const path = `${folder.path}/denort`;
  Deno.copyFileSync(DENORT ?? "", path);
  const interpreter = neededFiles(path).find((file) => /\/ld-linux[^/]*$/.test(file));
  const words = ["--set-rpath", libraries, "--set-interpreter"];
  const { success, stderr } = new Deno.Command("patchelf", {
    args: [...words, `${libraries}/${interpreter?.split("/").at(-1)}`, path],
  }).outputSync();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return { path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}
