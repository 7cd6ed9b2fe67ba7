import assert from "node:assert/strict";
import { executableTest, NO_OWN_ROOT, withinRoot } from "../support/executable.ts";
import { startLarder } from "../support/larder_process.ts";
import { programsMissing } from "../support/program.ts";
import { pullTwice } from "../support/pulled_twice.ts";
import { tempFolder } from "../support/temp_folder.ts";

/** The user of deploy/Containerfile. */
const USER = 65_532;

const EXCUSE = NO_OWN_ROOT || programsMissing("install", "ldd", "sed", "chown", "find");

executableTest(EXCUSE, "image: its files are enough for larder, as a user without rights", async (
  executable,
) => {
  using root = imageRoot(executable);

  await pullTwice({ storage: "/var/lib/larder", through: withinRoot(root.path, USER) });
});

executableTest(EXCUSE, "image: its health check tells a larder that answers from none", async (
  executable,
) => {
  using root = imageRoot(executable);
  await using larder = await startLarder(
    { "cache-storage-local": "/var/lib/larder" },
    {},
    withinRoot(root.path, USER),
  );

  assert.equal(statusWithin(root.path, larder.url), 0);
  larder.kill("SIGKILL");
  await larder.ended;
  assert.equal(statusWithin(root.path, larder.url), 1);
});

executableTest(EXCUSE, "image: it holds no program but larder, and no key", async (executable) => {
  using root = imageRoot(executable);

  const { stdout } = new Deno.Command("find", {
    args: [root.path, "-type", "f", "-not", "-name", "*.so*", "-printf", "/%P\n"],
  }).outputSync();

  assert.deepEqual(new TextDecoder().decode(stdout).trim().split("\n").sort(), [
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/bin/larder",
  ]);
});

/** The root folder that deploy/Containerfile copies. */
function imageRoot(executable: string): Disposable & { readonly path: string } {
  const folder = tempFolder();
  const path = `${folder.path}/root`;
  const { success, stderr } = new Deno.Command("deploy/image_root", {
    args: [executable, path],
  }).outputSync();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  Deno.chmodSync(folder.path, 0o755);
  // startLarder runs the executable by its own path.
  Deno.mkdirSync(`${path}${executable.replace(/\/[^/]*$/, "")}`, { recursive: true });
  Deno.symlinkSync("/usr/bin/larder", path + executable);
  return { path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

function statusWithin(root: string, server: string): number {
  const [program = "", ...args] = [...withinRoot(root, USER), "/usr/bin/larder", "status"];
  return new Deno.Command(program, {
    args: [...args, "--server", server],
    stdout: "null",
    stderr: "null",
  }).outputSync().code;
}
