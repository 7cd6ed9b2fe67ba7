import type { StorePathHash } from "../nix/store_path.ts";
import type { TimeSlice } from "../runtime/clock.ts";
import { type GraphLimits, type GraphMetadata, readReferenceGraph } from "./reference_graph.ts";

/** The roots whose closures contain `target`. Throws "overloaded" beyond a limit. */
export async function rootsReaching(
  metadata: GraphMetadata,
  { roots, target }: { readonly roots: readonly StorePathHash[]; readonly target: StorePathHash },
  { slice, limits }: { readonly slice: TimeSlice; readonly limits: GraphLimits },
): Promise<readonly StorePathHash[]> {
  if (roots.length === 0) return [];
  const graph = await readReferenceGraph(metadata, [...roots, target], slice, limits);
  const referrers = new Map<number, number[]>();
  for (let place = 0; place < graph.narOf.length; place++) {
    const end = graph.starts[place + 1] ?? 0;
    for (let at = graph.starts[place] ?? 0; at < end; at++) {
      const reference = graph.references[at] ?? 0;
      const known = referrers.get(reference);
      if (known === undefined) referrers.set(reference, [place]);
      else known.push(place);
    }
    if (slice.isOver) await slice.yield();
  }
  // A Set's iterator also visits the entries that the loop adds.
  const reaching = new Set([graph.roots.at(-1) ?? 0]);
  for (const place of reaching) {
    for (const referrer of referrers.get(place) ?? []) reaching.add(referrer);
    if (slice.isOver) await slice.yield();
  }
  return roots.filter((_, index) => reaching.has(graph.roots[index] ?? -1));
}
