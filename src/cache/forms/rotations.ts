/** The ranks that two bytes may have. */
const PAIRS = 1 << 16;

/** Sorts the rotations of blocks, whose memory it uses again. */
export class Rotations {
  #order: Int32Array;
  #nextOrder: Int32Array;
  /** The place among the different rotations, as far as they are known. */
  #ranks: Int32Array;
  #nextRanks: Int32Array;
  /** Of each rank in the order, and behind it that of the next one. */
  readonly #starts: Int32Array;

  constructor(lengthMax: number) {
    this.#order = new Int32Array(lengthMax);
    this.#nextOrder = new Int32Array(lengthMax);
    this.#ranks = new Int32Array(lengthMax);
    this.#nextRanks = new Int32Array(lengthMax);
    this.#starts = new Int32Array(Math.max(lengthMax, PAIRS) + 1);
  }

  /**
   * Where the rotations of the block begin, in the order of their bytes. Equal ones come in any
   * order. It knows the order of the first two bytes, then of twice as many, and so on: whatever
   * the block holds, each of these steps takes the same time.
   */
  sorted(block: Uint8Array): Int32Array {
    const { length } = block;
    for (let at = 0; at < length; at++) {
      this.#nextOrder[at] = at;
      this.#ranks[at] = (block[at] ?? 0) << 8 | (block[at + 1 < length ? at + 1 : 0] ?? 0);
    }
    this.#sortByRank(length, PAIRS);
    let different = this.#rank(length, 0);
    for (let known = 2; known < length && different < length; known *= 2) {
      // Whose second half is the lowest comes first.
      for (let at = 0; at < length; at++) {
        const start = (this.#order[at] ?? 0) - known;
        this.#nextOrder[at] = start < 0 ? start + length : start;
      }
      this.#sortByRank(length, different);
      different = this.#rank(length, known);
    }
    return this.#order.subarray(0, length);
  }

  /** Those of equal rank stay in the next order. */
  #sortByRank(length: number, rankCount: number): void {
    const [order, nextOrder, ranks, starts] = [
      this.#order,
      this.#nextOrder,
      this.#ranks,
      this.#starts,
    ];
    starts.fill(0, 0, rankCount + 1);
    for (let at = 0; at < length; at++) starts[(ranks[at] ?? 0) + 1]!++;
    for (let rank = 0; rank < rankCount; rank++) starts[rank + 1]! += starts[rank] ?? 0;
    for (let at = 0; at < length; at++) {
      const start = nextOrder[at] ?? 0;
      order[starts[ranks[start] ?? 0]!++] = start;
    }
  }

  /** Ranks by the halves of `known` bytes. Returns how many are different. */
  #rank(length: number, known: number): number {
    const [order, ranks, nextRanks] = [this.#order, this.#ranks, this.#nextRanks];
    let [rank, first, second] = [-1, -1, -1];
    for (let at = 0; at < length; at++) {
      const start = order[at] ?? 0;
      const half = start + known;
      const one = ranks[start] ?? 0;
      const other = ranks[half < length ? half : half - length] ?? 0;
      if (one !== first || other !== second) rank++;
      first = one;
      second = other;
      nextRanks[start] = rank;
    }
    [this.#ranks, this.#nextRanks] = [nextRanks, ranks];
    return rank + 1;
  }
}
