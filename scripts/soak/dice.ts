/** A reproducible random generator: the same seed and name give the same numbers. */
export class Dice {
  #state: number;

  constructor(seed: number, name: string) {
    this.#state = seed | 0;
    for (const character of name) {
      this.#state = Math.imul(this.#state ^ character.charCodeAt(0), 0x01000193);
    }
  }

  /** A random number of at least 0 and below 1 (mulberry32). */
  part(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number below `limit`. */
  below(limit: number): number {
    return Math.floor(this.part() * limit);
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("Cannot pick: there is nothing to pick from");
    return item;
  }

  /** One of the items, in proportion to its weight. */
  weighted<Item extends { readonly weight: number }>(items: readonly Item[]): Item {
    let left = this.part() * items.reduce((sum, { weight }) => sum + weight, 0);
    return items.find(({ weight }) => (left -= weight) < 0) ?? this.pick(items);
  }
}
