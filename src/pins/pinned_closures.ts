import { type ClosureSize, closureSizes } from "../closure/closure_sizes.ts";
import {
  LOST_NAR,
  NO_NAR,
  readReferenceGraph,
  type ReferenceGraph,
} from "../closure/reference_graph.ts";
import type { GraphFinder, PinFinder, PinLook, PinRoot } from "../metadata/metadata_store.ts";
import { nameInNarinfo } from "../nix/narinfo_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { TimeSlice } from "../runtime/clock.ts";
import { clock } from "../runtime/current.ts";

/** A pin root and the stored part of its closure. */
export interface PinnedClosure extends ClosureSize {
  readonly root: StorePathHash;
  /** The name in its store path; `null` if its narinfo is not stored. */
  readonly name: string | null;
  /** ISO 8601, UTC. */
  readonly pinnedAt: string;
  /** The names that hold it, if any. */
  readonly under?: readonly string[];
  /** True: names alone hold it. */
  readonly rolls?: true;
  /** True: larder fetches what is missing. */
  readonly keepComplete: boolean;
  /** Whether the last look found every path here; `null`: nobody has looked yet. */
  readonly complete: boolean | null;
  readonly look: ShownLook | null;
}

/** The last look at a closure. */
export interface ShownLook
  extends Pick<PinLook, "paths" | "missing" | "upstream" | "nowhere" | "unasked"> {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Names of the first missing paths, or their hashes. */
  readonly examples: readonly string[];
}

/** A known path of a closure. */
export interface ClosurePath {
  readonly storePathHash: StorePathHash;
  /** True where a row says that its NAR file is kept. */
  readonly isKept: boolean;
  /** A path whose narinfo names this one, if it is not kept: its own narinfo may be missing. */
  readonly referrer?: StorePathHash;
}

export type PinNotes = Pick<PinRoot, "keepComplete" | "look">;

/** The graph without the files that the last looks at the pins found lost. */
function withoutLost(graph: ReferenceGraph, pins: readonly PinRoot[]): ReferenceGraph {
  const { places } = graph;
  const narOf = [...graph.narOf];
  for (const storePathHash of pins.flatMap(({ look }) => look?.lost ?? [])) {
    const place = places.get(storePathHash);
    if (place !== undefined && narOf[place] !== NO_NAR) narOf[place] = LOST_NAR;
  }
  return { ...graph, narOf };
}

/**
 * The facts of a pin's notes, for people and programs. A pin of which a count misses paths is not
 * complete, although its last look says so.
 */
export function shownNotes(
  { keepComplete: keeps, look }: PinNotes,
  counted = 0,
): Pick<PinnedClosure, "keepComplete" | "complete" | "look"> {
  const keepComplete = keeps ?? false;
  if (look === undefined) return { keepComplete, complete: null, look: null };
  const { atMs, paths, missing, upstream, nowhere, unasked = 0, examples } = look;
  const at = new Date(atMs).toISOString();
  return {
    keepComplete,
    complete: missing === 0 && counted === 0,
    look: {
      ...{ at, paths, missing, upstream, nowhere, examples },
      ...unasked > 0 ? { unasked } : {},
    },
  };
}

/**
 * The counts, with a look that came behind them: the files that it found lost are missing, although
 * their rows say that they are kept.
 */
export function countsWithLook<Counts extends Pick<ClosureSize, "stored" | "missing">>(
  counts: Counts,
  look: Pick<PinLook, "missing"> | null | undefined,
): Counts {
  const { stored, missing } = counts;
  const lost = Math.min(stored, Math.max(0, (look?.missing ?? 0) - missing));
  return { ...counts, stored: stored - lost, missing: missing + lost };
}

/**
 * Limit for all pinned closures together: five closures of the promised size without a shared path.
 * The graph then takes some 150 MB.
 */
const PATHS_MAX = 500_000;
const REFERENCES_MAX = 8_000_000;

/** An operator waits for the answer. 100,000 paths take one or two seconds. */
const LIMIT_MS = 60_000;

/** Counts the closures of the pins. Each call is a count of its own. */
export interface ClosureLister {
  /**
   * Closures in the order of pinning. Throws "overloaded" if they exceed a limit, and soon after the
   * signal fires.
   */
  list(signal?: AbortSignal): Promise<readonly PinnedClosure[]>;
  /** The known paths that a root reaches, itself first. Throws like `list`. */
  paths(root: StorePathHash, signal?: AbortSignal): Promise<readonly ClosurePath[]>;
}

export interface PinnedClosuresDeps {
  readonly metadata: GraphFinder & PinFinder;
}

/** Counts them on the calling thread, in slices between requests. */
export class PinnedClosures implements ClosureLister {
  readonly #metadata: PinnedClosuresDeps["metadata"];

  constructor({ metadata }: PinnedClosuresDeps) {
    this.#metadata = metadata;
  }

  async list(signal?: AbortSignal): Promise<readonly PinnedClosure[]> {
    signal?.throwIfAborted();
    const slice = clock.slice(signal);
    const pins = await this.#metadata.pins();
    const roots = pins.map(({ storePathHash }) => storePathHash);
    const graph = await this.#graph(roots, slice, signal);
    const sizes = await closureSizes(withoutLost(graph, pins), slice);
    const bodies = await this.#metadata.narinfoBodies(roots, signal);
    const closures: PinnedClosure[] = [];
    for (const [index, { storePathHash, pinnedAtMs, names, rolls, ...notes }] of pins.entries()) {
      closures.push({
        root: storePathHash,
        name: nameInNarinfo(bodies.get(storePathHash) ?? "") ?? null,
        ...sizes[index] ?? { stored: 0, missing: 0, bytes: 0, ownBytes: 0 },
        pinnedAt: new Date(pinnedAtMs).toISOString(),
        ...(names && { under: names }),
        ...(rolls && { rolls }),
        ...shownNotes(notes, sizes[index]?.missing),
      });
      if (slice.isOver) await slice.yield();
    }
    return closures;
  }

  async paths(root: StorePathHash, signal?: AbortSignal): Promise<readonly ClosurePath[]> {
    const slice = clock.slice(signal);
    const { places, narOf, starts, references } = await this.#graph([root], slice, signal);
    // In the order of their places.
    const all = [...places.keys()];
    const referrers = new Map<number, StorePathHash>();
    for (const [place, storePathHash] of all.entries()) {
      for (const reference of references.slice(starts[place], starts[place + 1])) {
        const isNew = narOf[reference] === NO_NAR && !referrers.has(reference);
        if (isNew && reference !== place) referrers.set(reference, storePathHash);
      }
      if (slice.isOver) await slice.yield();
    }
    return all.map((storePathHash, place) => {
      const referrer = referrers.get(place);
      const isKept = narOf[place] !== NO_NAR;
      return { storePathHash, isKept, ...referrer === undefined ? {} : { referrer } };
    });
  }

  async #graph(
    roots: readonly StorePathHash[],
    slice: TimeSlice,
    signal: AbortSignal | undefined,
  ): Promise<ReferenceGraph> {
    signal?.throwIfAborted();
    const untilMs = clock.nowMs() + LIMIT_MS;
    const limits = { pathsMax: PATHS_MAX, referencesMax: REFERENCES_MAX, untilMs };
    return await readReferenceGraph(this.#metadata, roots, { slice, limits, signal });
  }
}
