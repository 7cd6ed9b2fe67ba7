import { messageOf } from "../../base/failure.ts";
import { EXIT } from "../../base/exit_codes.ts";
import type { StorePathArgument } from "./store_path_argument.ts";
import { Unreachable } from "./server_client.ts";

/** A store path for which the command failed. */
export interface FailedPath {
  readonly name: string;
  readonly reason: string;
}

/**
 * Runs `work` for each store path, and returns those that failed. Only an unreachable server stops
 * it early.
 */
export async function eachStorePath(
  targets: readonly StorePathArgument[],
  act: (target: StorePathArgument) => Promise<void>,
): Promise<readonly FailedPath[]> {
  const failures: FailedPath[] = [];
  for (const target of targets) {
    try {
      await act(target);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      failures.push({ name: target.given, reason: messageOf(error) });
    }
  }
  return failures;
}

/** Lists the failures on standard error, and returns the exit status. */
export function reportFailures(
  failures: readonly FailedPath[],
  title: string,
  writeError: (text: string) => void,
): number {
  if (failures.length === 0) return EXIT.ok;
  const lines = failures.map(({ name, reason }) => `  ${name}: ${reason}\n`);
  writeError(`larder: ${title}\n${lines.join("")}`);
  return EXIT.failed;
}

/** The name of a store path: its base name, and the given form if that differs. */
export function nameOf({ given, storePathHash, baseName }: StorePathArgument): string {
  const name = baseName ?? storePathHash;
  return given.includes(name) ? name : `${name} (${given})`;
}
