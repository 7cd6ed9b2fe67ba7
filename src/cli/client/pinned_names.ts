import { formatBytes } from "../../base/format_units.ts";
import { hashOfBaseName, parseBaseName } from "../../nix/store_path.ts";
import type { FailedPath } from "./each.ts";
import { thoseNamed } from "./package_names.ts";
import type { Pinned } from "./pinned_closures.ts";
import type { StorePathArgument } from "./store_path_argument.ts";

/** Pins that package names stand for. */
export interface PinnedNames {
  readonly found: readonly StorePathArgument[];
  /** The names that no pin has, or several have. */
  readonly failures: readonly FailedPath[];
}

/** Finds the one pin of each name. A name without a version stands for any version. */
export function findPinned(names: readonly string[], pins: readonly Pinned[]): PinnedNames {
  const found: StorePathArgument[] = [];
  const failures: FailedPath[] = [];
  for (const given of names) {
    const matching = thoseNamed(given, pins);
    const [only] = matching;
    if (matching.length === 1 && only !== undefined) found.push(argumentOf(given, only));
    else failures.push({ name: given, reason: reasonOf(matching) });
  }
  return { found, failures };
}

function argumentOf(given: string, { root, name }: Pinned): StorePathArgument {
  const baseName = parseBaseName(`${root}-${name}`);
  return { given, baseName, storePathHash: hashOfBaseName(baseName) };
}

function reasonOf(matching: readonly Pinned[]): string {
  if (matching.length === 0) return "no pin has this name; larder pins lists them all";
  const lines = matching.map(({ root, name, bytes, pinned_at }) =>
    `\n    ${root}-${name}  ${formatBytes(bytes)}, pinned ${pinned_at.slice(0, 10)}`
  );
  return `${matching.length} pins have this name; give one of${lines.join("")}`;
}
