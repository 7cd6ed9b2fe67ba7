import { type ClosureSize, closureSizes } from "../closure/closure_sizes.ts";
import { readReferenceGraph } from "../closure/reference_graph.ts";
import type { GraphFinder } from "../metadata/graph_finder.ts";
import type { PinFinder } from "../metadata/metadata_store.ts";
import { nameInNarinfo } from "../nix/narinfo_name.ts";
import type { StorePathHash } from "../nix/store_path.ts";
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
    const untilMs = clock.nowMs() + LIMIT_MS;
    const slice = clock.slice(signal);
    const pins = await this.#metadata.pins();
    const roots = pins.map(({ storePathHash }) => storePathHash);
    const limits = { pathsMax: PATHS_MAX, referencesMax: REFERENCES_MAX, untilMs };
    const reading = { slice, limits, signal };
    const graph = await readReferenceGraph(this.#metadata, roots, reading);
    const sizes = await closureSizes(graph, slice);
    const bodies = await this.#metadata.narinfoBodies(roots, signal);
    const closures: PinnedClosure[] = [];
    for (const [index, { storePathHash, pinnedAtMs, names, rolls }] of pins.entries()) {
      closures.push({
        root: storePathHash,
        name: nameInNarinfo(bodies.get(storePathHash) ?? "") ?? null,
        ...sizes[index] ?? { stored: 0, missing: 0, bytes: 0, ownBytes: 0 },
        pinnedAt: new Date(pinnedAtMs).toISOString(),
        ...(names && { under: names }),
        ...(rolls && { rolls }),
      });
      if (slice.isOver) await slice.yield();
    }
    return closures;
  }
}
