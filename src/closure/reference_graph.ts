import { Failure } from "../base/failure.ts";
import type { GraphFinder } from "../metadata/graph_finder.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { TimeSlice } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";

export type GraphMetadata = Pick<GraphFinder, "graphRows">;

/** Paths of one query: as many as one level of a graph has, but for huge ones. */
const PATHS_AT_ONCE = 5_000;

/** No servable NAR file for a store path. */
export const NO_NAR = -1;

/**
 * The store paths that the roots reach over stored references. A store path is its index in the
 * order of discovery; so is a NAR file.
 */
export interface ReferenceGraph {
  readonly roots: readonly number[];
  /** References of store path `n`: `references` from `starts[n]` up to `starts[n + 1]`. */
  readonly starts: readonly number[];
  readonly references: readonly number[];
  /** The kept NAR file of a store path with a stored narinfo, else `NO_NAR`. */
  readonly narOf: readonly number[];
  readonly narBytes: readonly number[];
}

export interface GraphLimits {
  readonly pathsMax: number;
  readonly referencesMax: number;
  /** Deadline by `clock.nowMs()`. */
  readonly untilMs: number;
}

/** Reads every store path that the roots reach, each once. Throws "overloaded" beyond a limit. */
export async function readReferenceGraph(
  metadata: GraphMetadata,
  roots: readonly StorePathHash[],
  slice: TimeSlice,
  limits: GraphLimits,
): Promise<ReferenceGraph> {
  const paths = new Places<StorePathHash>();
  const nars = new Places<NarName>();
  const starts: number[] = [];
  const references: number[] = [];
  const narOf: number[] = [];
  const narBytes: number[] = [];
  const rootPlaces = roots.map((root) => paths.of(root));

  while (narOf.length < paths.all.length) {
    const level = paths.all.slice(narOf.length, narOf.length + PATHS_AT_ONCE);
    const rows = await metadata.graphRows(level);
    const found = new Map(rows.map((row) => [row.storePathHash, row]));
    for (const storePathHash of level) {
      const { narName, keptBytes, references: more = [] } = found.get(storePathHash) ?? {};
      starts.push(references.length);
      for (const reference of more) references.push(paths.of(reference));
      const isKept = narName !== undefined && keptBytes !== undefined;
      narOf.push(isKept ? nars.of(narName) : NO_NAR);
      if (nars.all.length > narBytes.length) narBytes.push(keptBytes ?? 0);
      if (slice.isOver) await slice.yield();
      refuseBeyond(limits, paths.all.length, references.length);
    }
  }
  starts.push(references.length);
  return { roots: rootPlaces, starts, references, narOf, narBytes };
}

/** Keys in the order of their first use, and the place of each. */
class Places<Key> {
  readonly all: Key[] = [];
  readonly #places = new Map<Key, number>();

  of(key: Key): number {
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    this.#places.set(key, this.all.length);
    return this.all.push(key) - 1;
  }
}

function refuseBeyond(limits: GraphLimits, paths: number, references: number): void {
  const { pathsMax, referencesMax, untilMs } = limits;
  if (paths <= pathsMax && references <= referencesMax && clock.nowMs() <= untilMs) return;
  const facts = { paths, references };
  throw new Failure("overloaded", "Cannot read closures: they are beyond the limits", facts);
}
