/** A stretch of time. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

const STRETCHES_MAX = 64;

/** Waits that begin within this time of another count as one with it. */
const FIRST_WIDTH_MS = 100;

/**
 * The waits of one request, one after another. Their sum is exact. Of many, the place is as coarse
 * as the bound asks for.
 */
export class WaitNotes {
  /** Begin and length of each stretch in turn. */
  #notes: number[] = [];
  #widthMs = FIRST_WIDTH_MS;

  add(fromMs: number, toMs: number): void {
    if (toMs <= fromMs) return;
    const last = this.#notes.length - 1;
    if (fromMs - (this.#notes[last - 1] ?? -Infinity) < this.#widthMs) {
      this.#notes[last] = (this.#notes[last] ?? 0) + toMs - fromMs;
      return;
    }
    this.#notes.push(fromMs, toMs - fromMs);
    if (this.#notes.length > 2 * STRETCHES_MAX) this.#joinPairs();
  }

  get stretches(): readonly Stretch[] {
    return this.#notes.flatMap((fromMs, at) =>
      at % 2 === 0 ? { fromMs, toMs: fromMs + (this.#notes[at + 1] ?? 0) } : []
    );
  }

  #joinPairs(): void {
    const joined: number[] = [];
    for (let at = 0; at < this.#notes.length; at += 4) {
      const [fromMs = 0, ms = 0, , more = 0] = this.#notes.slice(at, at + 4);
      joined.push(fromMs, ms + more);
    }
    this.#notes = joined;
    this.#widthMs *= 2;
  }
}
