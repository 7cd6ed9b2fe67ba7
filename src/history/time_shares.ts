/** What a moment of a pull counts as. The smaller wins where two happen at once. */
export const SHARE = { waiting: 0, fetching: 1, sending: 2 } as const;

export type Share = (typeof SHARE)[keyof typeof SHARE];

const SHARES = Object.values(SHARE);
const BROADEST = SHARE.sending;

/** Stretches of time that one share keeps apart. Beyond, the smallest gap between two counts too. */
const STRETCHES_MAX = 64;

/**
 * Divides time among shares: each moment counts once, for the first share that has it. A share
 * holds its own stretches and those of the shares before, so the differences are disjoint.
 */
export class TimeShares {
  /** For each share, begins and ends in turn: disjoint, and in order. */
  readonly #stretches: readonly number[][] = SHARES.map(() => []);
  /** The time of each share, together with the shares before, up to `#settledAtMs`. */
  readonly #settledMs: number[] = SHARES.map(() => 0);
  #settledAtMs = -Infinity;

  /** Adds a stretch of time. What lies before the last `settle` counts no more. */
  add(share: Share, fromMs: number, toMs: number): void {
    const from = Math.max(fromMs, this.#settledAtMs);
    if (toMs > from) this.#add(share, from, toMs);
  }

  /** Adds a stretch behind which nothing else is under way. */
  addLast(share: Share, fromMs: number, toMs: number): void {
    if (this.#stretches[BROADEST]?.length !== 0) {
      this.add(share, fromMs, toMs);
      return this.settle(toMs);
    }
    const ms = toMs - Math.max(fromMs, this.#settledAtMs);
    if (ms <= 0) return;
    for (let index: number = share; index <= BROADEST; index++) {
      this.#settledMs[index] = (this.#settledMs[index] ?? 0) + ms;
    }
    this.#settledAtMs = toMs;
  }

  /** The time of each share, together with the shares before. */
  sums(): readonly number[] {
    return this.#stretches.map((stretches, index) =>
      (this.#settledMs[index] ?? 0) + lengthOf(stretches)
    );
  }

  /** Nothing is under way: what lies before counts as it is now. */
  settle(atMs: number): void {
    for (const [index, stretches] of this.#stretches.entries()) {
      this.#settledMs[index] = (this.#settledMs[index] ?? 0) + lengthOf(stretches);
      const end = stretches.at(-1) ?? -Infinity;
      stretches.length = 0;
      this.#settledAtMs = Math.max(this.#settledAtMs, atMs, end);
    }
  }

  #add(first: number, from: number, to: number): void {
    for (let index = first; index <= BROADEST; index++) {
      const stretches = this.#stretches[index] ?? [];
      insert(stretches, from, to);
      if (stretches.length > 2 * STRETCHES_MAX) {
        const gap = smallestGap(stretches);
        this.#add(index, stretches[gap] ?? 0, stretches[gap + 1] ?? 0);
      }
    }
  }
}

/** Joins the new stretch with those that it touches. Most stretches touch or follow the last. */
function insert(stretches: number[], from: number, to: number): void {
  const last = stretches.length;
  const lastFrom = stretches[last - 2] ?? -Infinity;
  const lastTo = stretches[last - 1] ?? -Infinity;
  if (from > lastTo) return void stretches.push(from, to);
  if (from >= lastFrom) return void (stretches[last - 1] = Math.max(lastTo, to));
  let end = last;
  while (end > 0 && (stretches[end - 2] ?? 0) > to) end -= 2;
  let begin = end;
  while (begin > 0 && (stretches[begin - 1] ?? 0) >= from) begin -= 2;
  const joined = begin < end
    ? [Math.min(from, stretches[begin] ?? from), Math.max(to, stretches[end - 1] ?? to)]
    : [from, to];
  stretches.splice(begin, end - begin, ...joined);
}

/** The index of the end in front of it. */
function smallestGap(stretches: readonly number[]): number {
  let smallest = 1;
  for (let index = 1; index + 1 < stretches.length; index += 2) {
    if (gapAt(stretches, index) < gapAt(stretches, smallest)) smallest = index;
  }
  return smallest;
}

function gapAt(stretches: readonly number[], index: number): number {
  return (stretches[index + 1] ?? 0) - (stretches[index] ?? 0);
}

function lengthOf(stretches: readonly number[]): number {
  let ms = 0;
  for (let index = 0; index < stretches.length; index += 2) {
    ms += (stretches[index + 1] ?? 0) - (stretches[index] ?? 0);
  }
  return ms;
}
