/**
 * Narinfos in crowds without the Worker before it starts. A larder that serves hits alone never
 * pays the 10 MB of a Worker, and a client's first narinfos do not wait for its modules.
 */
const OWN_NARINFOS = 16;

/** Maximum crowd size; each lost Worker doubles the size up to it. */
const OWN_NARINFOS_MAX = 4_096;

/** The rule when the Worker of narinfos starts: the narinfos that this thread fetches itself. */
export class OwnNarinfos {
  #count = OWN_NARINFOS;
  #left = OWN_NARINFOS;

  /** Counts a narinfo. True if a Worker should start. */
  another(): boolean {
    return --this.#left < 0;
  }

  /** A Worker was lost. */
  lost(): void {
    this.#count = Math.min(2 * this.#count, OWN_NARINFOS_MAX);
    this.#left = this.#count;
  }
}
