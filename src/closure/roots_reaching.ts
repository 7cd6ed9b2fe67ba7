import type { StorePathHash } from "../nix/store_path.ts";
import type { TimeSlice } from "../runtime/clock.ts";
import type { ReferenceGraph } from "./reference_graph.ts";

/**
 * The store paths below some roots, each with those that refer to it. A path is its index, and so
 * takes eight bytes, and four more for each reference.
 */
export interface ReferrerGraph {
  readonly roots: readonly StorePathHash[];
  readonly places: ReadonlyMap<StorePathHash, number>;
  /** Referrers of store path `n`: `referrers` from `starts[n]` up to `starts[n + 1]`. */
  readonly starts: Int32Array;
  readonly referrers: Int32Array;
}

/** Reading the clock each time would cost more than the counting. */
const LOOK_EVERY = 4_096;

/** Turns a graph around. `roots`: in the order of the graph's. */
export async function referrersIn(
  graph: ReferenceGraph,
  roots: readonly StorePathHash[],
  slice: TimeSlice,
): Promise<ReferrerGraph> {
  const count = graph.narOf.length;
  const starts = new Int32Array(count + 1);
  for (let at = 0; at < graph.references.length; at++) {
    const behind = (graph.references[at] ?? 0) + 1;
    starts[behind] = (starts[behind] ?? 0) + 1;
    if (at % LOOK_EVERY === 0 && slice.isOver) await slice.yield();
  }
  for (let place = 0; place < count; place++) {
    starts[place + 1] = (starts[place + 1] ?? 0) + (starts[place] ?? 0);
  }
  const next = starts.slice();
  const referrers = new Int32Array(graph.references.length);
  for (let place = 0; place < count; place++) {
    const end = graph.starts[place + 1] ?? 0;
    for (let at = graph.starts[place] ?? 0; at < end; at++) {
      const reference = graph.references[at] ?? 0;
      const free = next[reference] ?? 0;
      referrers[free] = place;
      next[reference] = free + 1;
    }
    if (slice.isOver) await slice.yield();
  }
  return { roots, places: graph.places, starts, referrers };
}

/** The roots whose closures contain `target`. */
export async function rootsReaching(
  { roots, places, starts, referrers }: ReferrerGraph,
  target: StorePathHash,
  slice: TimeSlice,
): Promise<readonly StorePathHash[]> {
  const targetPlace = places.get(target);
  if (targetPlace === undefined) return [];
  const isReached = new Uint8Array(places.size);
  const queue = new Int32Array(places.size);
  let length = 0;
  const reach = (place: number) => {
    if (isReached[place]) return;
    isReached[place] = 1;
    queue[length++] = place;
  };
  reach(targetPlace);
  for (let head = 0; head < length; head++) {
    const place = queue[head] ?? 0;
    const end = starts[place + 1] ?? 0;
    for (let at = starts[place] ?? 0; at < end; at++) reach(referrers[at] ?? 0);
    if (slice.isOver) await slice.yield();
  }
  return roots.filter((root) => isReached[places.get(root) ?? -1]);
}
