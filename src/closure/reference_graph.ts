import { Failure } from "../base/failure.ts";
import { ownText } from "../base/own_text.ts";
import type { GraphFinder } from "../metadata/metadata_store.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { TimeSlice } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";

export type GraphMetadata = Pick<GraphFinder, "graphRows">;

/** Paths of one query: as many as one level of a graph has, but for huge ones. */
const PATHS_AT_ONCE = 5_000;

/** No servable NAR file for a store path. */
export const NO_NAR = -1;

/** No NAR file either, although its row says that it is kept. */
export const LOST_NAR = -2;

/**
 * The store paths that the roots reach over stored references. A store path is its index in the
 * order of discovery; so is a NAR file.
 */
export interface ReferenceGraph {
  /** The index of each store path. */
  readonly places: ReadonlyMap<StorePathHash, number>;
  readonly roots: readonly number[];
  /** References of store path `n`: `references` from `starts[n]` up to `starts[n + 1]`. */
  readonly starts: readonly number[];
  readonly references: readonly number[];
  /** The kept NAR file of a store path with a stored narinfo, else `NO_NAR` or `LOST_NAR`. */
  readonly narOf: readonly number[];
  readonly narBytes: readonly number[];
}

export interface GraphLimits {
  readonly pathsMax: number;
  readonly referencesMax: number;
  /** Deadline by `clock.nowMs()`. */
  readonly untilMs: number;
}

export interface GraphReading {
  readonly slice: TimeSlice;
  readonly limits: GraphLimits;
  readonly signal?: AbortSignal | undefined;
}

/** Reads every store path that the roots reach, each once. Throws "overloaded" beyond a limit. */
export async function readReferenceGraph(
  metadata: GraphMetadata,
  roots: readonly StorePathHash[],
  { slice, limits, signal }: GraphReading,
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
    const rows = await metadata.graphRows(level, signal);
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
  return { places: paths.places, roots: rootPlaces, starts, references, narOf, narBytes };
}

/** Keys in the order of their first use, and the place of each. */
class Places<Key extends string> {
  readonly all: Key[] = [];
  readonly places = new Map<Key, number>();

  of(key: Key): number {
    const known = this.places.get(key);
    if (known !== undefined) return known;
    // Cut from the text of all references of a row.
    const own = ownText(key);
    this.places.set(own, this.all.length);
    return this.all.push(own) - 1;
  }
}

function refuseBeyond(limits: GraphLimits, paths: number, references: number): void {
  const { pathsMax, referencesMax, untilMs } = limits;
  if (paths <= pathsMax && references <= referencesMax && clock.nowMs() <= untilMs) return;
  const facts = { paths, references };
  throw new Failure("overloaded", "Cannot read closures: they are beyond the limits", facts);
}
