/** Narinfos in one turn of the event loop that show that this thread has enough to do. */
const CROWD_MIN = 2;

/** Time after such a turn in which the next narinfos count as crowded, too. */
const CROWDED_MS = 20;

/**
 * The rule which narinfos a Worker takes: those that come in crowds. Their messages are joined.
 * A lone one costs more in a Worker than here, and its client waits longer.
 */
export class CrowdedTurns {
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
    const nowMs = performance.now();
    if (this.#count >= CROWD_MIN) this.#crowdedAtMs = nowMs;
    this.#count = 0;
    this.#turn = undefined;
    return nowMs - this.#crowdedAtMs < CROWDED_MS;
  }
}
