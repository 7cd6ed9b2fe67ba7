/** A path of a closure, as a cache knows it. */
export interface PulledPath {
  readonly name: string;
  /** Names of paths; its own may be among them. */
  readonly references: readonly string[];
  readonly fileBytes: number;
}

/** Answers of an upstream that cannot come side by side. */
export interface RoundTrips {
  readonly narinfos: number;
  readonly nars: number;
}

/**
 * The least of them for a cold pull. The upstream's narinfos tell the references, so each level of
 * the closure waits for the one above. Nix brings a path after its references. So the NARs above
 * `prefetchBytesMax`, which larder does not prefetch, wait for those below on their chain.
 */
export function leastRoundTrips(
  top: string,
  paths: readonly PulledPath[],
  prefetchBytesMax: number,
): RoundTrips {
  const byName = new Map(paths.map((path) => [path.name, path]));
  return { narinfos: levelsBelow(top, byName), nars: narsOnChain(top, byName, prefetchBytesMax) };
}

type Paths = ReadonlyMap<string, PulledPath>;

/** Levels that a walk in breadth finds, the top included. */
function levelsBelow(top: string, paths: Paths): number {
  const seen = new Set<string>([top]);
  let levels = 0;
  for (let level = [top]; level.length > 0; levels++) {
    const below = level.flatMap((name) => paths.get(name)?.references ?? []);
    level = [...new Set(below)].filter((name) => !seen.has(name));
    for (const name of level) seen.add(name);
  }
  return levels;
}

function narsOnChain(top: string, paths: Paths, prefetchBytesMax: number): number {
  const known = new Map<string, number>();
  const from = (name: string): number => {
    const path = paths.get(name);
    const found = known.get(name);
    if (path === undefined || found !== undefined) return found ?? 0;
    const below = path.references.filter((reference) => reference !== name).map(from);
    const nars = Math.max(0, ...below) + (path.fileBytes > prefetchBytesMax ? 1 : 0);
    known.set(name, nars);
    return nars;
  };
  return from(top);
}
