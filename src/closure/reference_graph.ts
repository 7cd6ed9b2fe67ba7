import type { TimeSlice } from "../base/time_slice.ts";
import { Failure } from "../base/failure.ts";
import type { NarFinder, NarinfoFinder, ReferenceFinder } from "../metadata/metadata_store.ts";
import type { NarName } from "../nix/nar_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";

export type GraphMetadata = NarinfoFinder & Pick<NarFinder, "findNar"> & ReferenceFinder;

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
  /** Deadline by `performance.now()`. */
  readonly untilMs: number;
}

/** Reads every store path that the roots reach, each once. Throws "overloaded" beyond a limit. */
export async function readReferenceGraph(
  metadata: GraphMetadata,
  roots: readonly StorePathHash[],
  slice: TimeSlice,
  limits: GraphLimits,
): Promise<ReferenceGraph> {
  const paths = new Map<StorePathHash, number>();
  const nars = new Map<NarName, number>();
  const starts: number[] = [];
  const references: number[] = [];
  const narOf: number[] = [];
  const narBytes: number[] = [];
  const rootPlaces = roots.map((root) => placeIn(paths, root));

  // A Map's iterator also visits entries that the loop adds.
  for (const storePathHash of paths.keys()) {
    starts.push(references.length);
    const row = await metadata.findNarinfo(storePathHash);
    if (row === undefined) {
      narOf.push(NO_NAR);
    } else {
      const kept = (await metadata.findNar(row.narName))?.kept;
      narOf.push(kept === undefined ? NO_NAR : placeIn(nars, row.narName));
      if (nars.size > narBytes.length) narBytes.push(kept?.fileSize ?? 0);
      for (const reference of await metadata.referencesOf(storePathHash)) {
        references.push(placeIn(paths, reference));
      }
    }
    if (slice.isOver) await slice.yield();
    refuseBeyond(limits, paths.size, references.length);
  }
  starts.push(references.length);
  return { roots: rootPlaces, starts, references, narOf, narBytes };
}

function placeIn<Key>(places: Map<Key, number>, key: Key): number {
  const known = places.get(key);
  if (known !== undefined) return known;
  places.set(key, places.size);
  return places.size - 1;
}

function refuseBeyond(limits: GraphLimits, paths: number, references: number): void {
  const { pathsMax, referencesMax, untilMs } = limits;
  if (paths <= pathsMax && references <= referencesMax && performance.now() <= untilMs) return;
  const facts = { paths, references };
  throw new Failure("overloaded", "Cannot read closures: they are beyond the limits", facts);
}
