import { LRUCache } from "lru-cache";
import type { NarName } from "../../nix/nar_name.ts";

/** How long an upstream that let us down with a NAR file is asked for that file last. */
const DEMOTED_FOR_MS = 60 * 60 * 1_000;
const ENTRIES_MAX = 10_000;

/**
 * How it let us down: it sent a bad file, or has no such file although its narinfo said so
 * (because it has the path in another compression by now, say).
 */
export type Demotion = "bad" | "absent";

/** Which upstream has let us down with which NAR file: the others are asked first next time. */
export class Demotions {
  readonly #entries = new LRUCache<string, Demotion>({
    max: ENTRIES_MAX,
    ttl: DEMOTED_FOR_MS,
    ttlResolution: 0,
  });
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

  /** True when there is none at all, as nearly always. */
  get none(): boolean {
    return performance.now() - this.#lastAtMs > DEMOTED_FOR_MS;
  }
}
