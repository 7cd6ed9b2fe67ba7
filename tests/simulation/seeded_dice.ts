import type { Dice } from "../../src/runtime/dice.ts";

/** Chance of one seed: mulberry32. The same seed gives the same sequence. */
export class SeededDice implements Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let word = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  }

  uuid(): string {
    const hex = [...this.bytes(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-8$4-$5");
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: count }, () => this.below(256));
  }

  /** A whole number from 0 to `end - 1`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end);
  }

  /** A number between both. */
  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  /** True in so many of all cases. */
  happens(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of them. Throws for none. */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("Cannot pick one of none");
    return item;
  }
}
