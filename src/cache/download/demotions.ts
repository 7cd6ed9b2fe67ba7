import { LRUCache } from "lru-cache";
import type { NarName } from "../../nix/nar_name.ts";

/** How long an upstream that sent a bad NAR file is asked for that file last. */
const DEMOTED_FOR_MS = 60 * 60 * 1_000;
const ENTRIES_MAX = 10_000;

/** Which upstream has let us down with which NAR file: the others are asked first next time. */
export class Demotions {
  readonly #entries = new LRUCache<string, true>({
    max: ENTRIES_MAX,
    ttl: DEMOTED_FOR_MS,
    ttlResolution: 0,
  });

  add(narName: NarName, upstream: string): void {
    this.#entries.set(`${narName} ${upstream}`, true);
  }

  has(narName: NarName, upstream: string): boolean {
    return this.#entries.size > 0 && this.#entries.has(`${narName} ${upstream}`);
  }

  /** True when there is none at all, as nearly always. */
  get none(): boolean {
    return this.#entries.size === 0;
  }
}
