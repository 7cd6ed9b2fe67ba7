import { messageOf } from "../../base/failure.ts";
import { EXIT } from "../../base/exit_codes.ts";
import type { StorePathArgument } from "./store_path_argument.ts";
import { Unreachable } from "./server_client.ts";

/** What was asked for and could not be done. */
export interface Shortfall {
  readonly what: string;
  readonly reason: string;
}

/**
 * Does the same for each store path; what fails for one does not keep the others from it. Only
 * an unreachable server ends it at once. Returns what failed.
 */
export async function eachStorePath(
  targets: readonly StorePathArgument[],
  act: (target: StorePathArgument) => Promise<void>,
): Promise<readonly Shortfall[]> {
  const failures: Shortfall[] = [];
  for (const target of targets) {
    try {
      await act(target);
    } catch (error) {
      if (error instanceof Unreachable) throw error;
      failures.push({ what: target.given, reason: messageOf(error) });
    }
  }
  return failures;
}

/** Lists on standard error what could not be done, and chooses the exit status. */
export function reportFailures(
  failures: readonly Shortfall[],
  title: string,
  writeError: (text: string) => void,
): number {
  if (failures.length === 0) return EXIT.ok;
  const lines = failures.map(({ what, reason }) => `  ${what}: ${reason}\n`);
  writeError(`larder: ${title}\n${lines.join("")}`);
  return EXIT.failed;
}

/** What to call a store path: as the store does, and as it was typed where that differs. */
export function nameOf({ given, storePathHash, baseName }: StorePathArgument): string {
  const name = baseName ?? storePathHash;
  return given.includes(name) ? name : `${name} (${given})`;
}
