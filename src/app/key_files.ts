import type { Logger } from "../telemetry/logger.ts";

/** Permissions of whoever is neither the file's user nor of its group. */
const OTHERS = 0o007;

/** Warns of each file that holds a secret key and is open to every user of this machine. */
export function warnOfOpenKeys(
  paths: readonly (string | undefined)[],
  log: Pick<Logger, "warn">,
): void {
  for (const path of paths) {
    const mode = path === undefined ? 0 : permissionsOf(path);
    if ((mode & OTHERS) === 0) continue;
    log.warn("key file is open to others", {
      path: path ?? "",
      mode: mode.toString(8).padStart(4, "0"),
      hint: `chmod o-rwx ${path}`,
    });
  }
}

/** 0 where there are none, or no file: whoever needs the file says so. */
function permissionsOf(path: string): number {
  try {
    return (Deno.statSync(path).mode ?? 0) & 0o777;
  } catch {
    return 0;
  }
}
