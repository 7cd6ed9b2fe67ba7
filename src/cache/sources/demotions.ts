import { lruOf } from "../../base/lru.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";

/** Time in which a demoted upstream gets requests last. */
const DEMOTED_FOR_MS = 60 * 60 * 1_000;
const ENTRIES_MAX = 10_000;

/**
 * The reason for a demotion. "bad": the upstream sent a wrong file. "missing": it did not send the
 * announced file, because it compresses anew or breaks off each time, for example.
 */
export type Demotion = "bad" | "missing";

/** NARs of its own narinfos that an upstream loses in a row before it comes last for all. */
const LOST_MAX = 3;

/** A NAR, and the path whose narinfo leads to it. */
export interface NarOfPath {
  readonly narName: NarName;
  readonly storePathHash: StorePathHash;
}

const LIMITS = { countMax: ENTRIES_MAX, ttlMs: DEMOTED_FOR_MS };

/** The upstreams that failed to send a NAR file: later requests ask the others first. */
export class Demotions {
  readonly #entries = lruOf<string, Demotion>(LIMITS);
  /** Demotions by store path, too: an upstream may announce another file each time. */
  readonly #ofPaths = lruOf<StorePathHash, Map<string, Demotion>>(LIMITS);
  /** NARs that an upstream lacked since it sent one, by its URL. */
  readonly #lost = lruOf<string, Set<NarName>>(LIMITS);
  /** Paths that no other upstream has: those that come last are all that there is. */
  readonly #alone = lruOf<StorePathHash, true>(LIMITS);
  #lastAtMs = -Infinity;

  add(narName: NarName, upstream: string, how: Demotion): void {
    this.#entries.set(`${narName} ${upstream}`, how);
    this.#lastAtMs = clock.nowMs();
  }

  /** The upstream lacks a NAR of its own narinfo. */
  lost(narName: NarName, upstream: string): void {
    this.add(narName, upstream, "missing");
    const lost = this.#lost.get(upstream) ?? new Set();
    if (lost.size < LOST_MAX) lost.add(narName);
    this.#lost.set(upstream, lost);
  }

  /** The upstream sends a NAR: it does not lack all of them. */
  sent(upstream: string): void {
    this.#lost.delete(upstream);
  }

  get(narName: NarName, upstream: string): Demotion | undefined {
    return this.none ? undefined : this.#entries.get(`${narName} ${upstream}`);
  }

  /**
   * False for a source that failed to send the NAR, and for an upstream that lost several while
   * another may have the path.
   */
  maySend({ narName, storePathHash }: NarOfPath, upstream: string): boolean {
    if (this.none) return true;
    if (this.get(narName, upstream) !== undefined) return false;
    return !this.#hasLostSeveral(upstream) || this.#alone.has(storePathHash);
  }

  /** Call it after the upstream's narinfo was fetched again. */
  forgive(narName: NarName, upstream: string): void {
    this.#entries.delete(`${narName} ${upstream}`);
  }

  /** The upstream's narinfo of this path led to the file that it failed to send. */
  addPath(storePathHash: StorePathHash, upstream: string, how: Demotion): void {
    const ofPath = this.#ofPaths.get(storePathHash) ?? new Map<string, Demotion>();
    this.#ofPaths.set(storePathHash, ofPath.set(upstream, how));
  }

  /** The upstreams to ask last for the narinfo of this path. */
  ofPath(storePathHash: StorePathHash): ReadonlySet<string> {
    if (this.none) return new Set();
    const losers = [...this.#lost.keys()].filter((upstream) => this.#hasLostSeveral(upstream));
    return new Set([...this.#ofPaths.get(storePathHash)?.keys() ?? [], ...losers]);
  }

  /** No other upstream has the path: drops the "missing" demotions, as the file may be back. */
  forgivePath(storePathHash: StorePathHash): void {
    const ofPath = this.#ofPaths.get(storePathHash);
    for (const [upstream, how] of ofPath ?? []) if (how === "missing") ofPath?.delete(upstream);
    this.#alone.set(storePathHash, true);
  }

  /** True without any demotion, the usual case. */
  get none(): boolean {
    return clock.nowMs() - this.#lastAtMs > DEMOTED_FOR_MS;
  }

  #hasLostSeveral(upstream: string): boolean {
    return (this.#lost.get(upstream)?.size ?? 0) >= LOST_MAX;
  }
}
