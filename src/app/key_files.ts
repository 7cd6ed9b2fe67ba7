import type { Settings } from "../config/options.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Permission bits of all users but the file's owner and group. */
const OTHERS = 0o007;

/** The file of the signing key. */
export function keyFileOf(settings: Settings, storage: string): string {
  return settings["cache.secret-key-path"] ?? keyFileIn(storage);
}

/** The file of a key that larder makes in its storage. */
export function keyFileIn(storage: string): string {
  return `${storage}/secret-key`;
}

/** True if the key is in the database, where all larders of several machines find it. */
export function isKeyShared(settings: Settings): boolean {
  return settings["cache.secret-key-path"] === undefined &&
    settings["cache.database-url"].kind === "postgres";
}

/**
 * Warns of each secret key file that every user of this machine can open. Asks beside the thread
 * that answers: a path on a mount whose server is gone never says its mode.
 */
export async function warnOfOpenKeys(
  paths: readonly (string | undefined)[],
  log: Pick<Logger, "event">,
): Promise<void> {
  for (const path of paths) {
    const mode = path === undefined ? 0 : await permissionsOf(path);
    if ((mode & OTHERS) === 0) continue;
    log.event("key-file-open", {
      path: path ?? "",
      mode: mode.toString(8).padStart(4, "0"),
    });
  }
}

/** The permission bits; 0 if there is no file, which its reader reports. */
async function permissionsOf(path: string): Promise<number> {
  try {
    return ((await Deno.stat(path)).mode ?? 0) & 0o777;
  } catch {
    return 0;
  }
}
