import { clock } from "../../runtime/current.ts";

/** Narinfos in one turn of the event loop that make a crowd: this thread has enough to do. */
const NARINFOS_MIN = 2;

/** Time after a crowd in which the next narinfos belong to it, too. */
const CROWDED_MS = 20;

/**
 * Detects bursts of narinfo requests. A Worker takes those in a crowd, many in one message. A lone
 * one costs more in a Worker than here, and its client waits longer.
 */
export class NarinfoCrowd {
  #count = 0;
  #turn: Promise<boolean> | undefined;
  #crowdedAtMs = -Infinity;

  /** Counts a narinfo. Resolves behind this turn, to true where there is a crowd. */
  joined(): Promise<boolean> {
    this.#count++;
    // Code that became ready in the same turn runs first.
    return this.#turn ??= Promise.resolve().then(() => this.#end());
  }

  #end(): boolean {
    const nowMs = clock.nowMs();
    if (this.#count >= NARINFOS_MIN) this.#crowdedAtMs = nowMs;
    this.#count = 0;
    this.#turn = undefined;
    return nowMs - this.#crowdedAtMs < CROWDED_MS;
  }
}
