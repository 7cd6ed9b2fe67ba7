import { lruOf } from "../../base/lru.ts";
import type { StorePathHash } from "../../nix/store_path.ts";

/** Some 500 bytes each. */
const PATHS_MAX = 5_000;

/** What an upstream said about a store path. */
export interface UpstreamWord {
  readonly upstream: string;
  /** `found`, `absent`, `down` if it got no request, or why its answer was of no use. */
  readonly result: string;
  readonly atMs: number;
}

/** What upstreams said about the newest paths. In memory only. */
export class PathRecord {
  readonly #nowMs: () => number;
  readonly #answers = lruOf<StorePathHash, readonly UpstreamWord[]>({ countMax: PATHS_MAX });

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  answered(storePathHash: StorePathHash, upstream: string, result: string): void {
    const answer = { upstream, result, atMs: this.#nowMs() };
    const others = this.#answers.peek(storePathHash)?.filter((one) => one.upstream !== upstream);
    this.#answers.set(storePathHash, others === undefined ? [answer] : [...others, answer]);
  }

  /** The newest answer of each upstream, since the start of larder. */
  of(storePathHash: StorePathHash): readonly UpstreamWord[] {
    return this.#answers.get(storePathHash) ?? [];
  }
}
