import { programsMissing, testWhere } from "./program.ts";

/** larder's executable; `undefined` if the variable names none. */
export const EXECUTABLE = Deno.env.get("LARDER_EXECUTABLE") || undefined;

/** Why a test that makes a root folder of its own cannot run here; empty when it can. */
export const NO_OWN_ROOT = Deno.build.os === "linux" && Deno.uid() === 0
  ? programsMissing("unshare", "mount", "chroot", "mkdir")
  : "only root of Linux may change the root folder";

/** Registers a test of the executable. It is ignored where there is none, or with an `excuse`. */
export function executableTest(
  excuse: string,
  name: string,
  fn: (executable: string) => Promise<void>,
): void {
  const missing = EXECUTABLE === undefined
    ? "LARDER_EXECUTABLE names none: scripts/deno task compile"
    : excuse;
  testWhere(missing, name, () => fn(EXECUTABLE ?? ""));
}

/**
 * A program that runs the words behind it as the user of this number. `root` is the root folder,
 * with the /proc that every container has.
 */
export function withinRoot(root: string, user = 0): readonly string[] {
  const script = 'root=$1 user=$2; shift 2; mkdir -p "$root/proc"; ' +
    'mount -t proc proc "$root/proc"; exec chroot --userspec="$user:$user" "$root" "$@"';
  return ["unshare", "--mount", "sh", "-euc", script, "sh", root, String(user)];
}
