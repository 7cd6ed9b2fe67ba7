import { LRUCache } from "lru-cache";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";

/** How long an upstream that let us down is asked last. */
const DEMOTED_FOR_MS = 60 * 60 * 1_000;
const ENTRIES_MAX = 10_000;

/**
 * How it let us down: it sent a bad file, or did not send the file that its narinfo announced
 * (because it has the path in another compression by now, say, or breaks off each time).
 */
export type Demotion = "bad" | "missing";

const LIMITS = { max: ENTRIES_MAX, ttl: DEMOTED_FOR_MS, ttlResolution: 0 };

/** Which upstream has let us down with which NAR file: the others are asked first next time. */
export class Demotions {
  readonly #entries = new LRUCache<string, Demotion>(LIMITS);
  /** By store path: an upstream may announce another file each time. */
  readonly #ofPaths = new LRUCache<StorePathHash, Map<string, Demotion>>(LIMITS);
  #lastAtMs = -Infinity;

  add(narName: NarName, upstream: string, how: Demotion): void {
    this.#entries.set(`${narName} ${upstream}`, how);
    this.#lastAtMs = performance.now();
  }

  get(narName: NarName, upstream: string): Demotion | undefined {
    return this.none ? undefined : this.#entries.get(`${narName} ${upstream}`);
  }

  /** Its narinfo has been asked for again since. */
  forgive(narName: NarName, upstream: string): void {
    this.#entries.delete(`${narName} ${upstream}`);
  }

  /** Its narinfo of this path led to the file that it let us down with. */
  addPath(storePathHash: StorePathHash, upstream: string, how: Demotion): void {
    const ofPath = this.#ofPaths.get(storePathHash) ?? new Map<string, Demotion>();
    this.#ofPaths.set(storePathHash, ofPath.set(upstream, how));
  }

  /** The upstreams whose narinfo of this path is asked for last. */
  ofPath(storePathHash: StorePathHash): ReadonlySet<string> {
    return new Set(this.none ? [] : this.#ofPaths.get(storePathHash)?.keys());
  }

  /** No other upstream has the path: what was only missing may be there again. */
  forgivePath(storePathHash: StorePathHash): void {
    const ofPath = this.#ofPaths.get(storePathHash);
    for (const [upstream, how] of ofPath ?? []) if (how === "missing") ofPath?.delete(upstream);
  }

  /** True when there is none at all, as nearly always. */
  get none(): boolean {
    return performance.now() - this.#lastAtMs > DEMOTED_FOR_MS;
  }
}
