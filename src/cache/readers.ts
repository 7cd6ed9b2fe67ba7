import type { NarName } from "../nix/nar_name.ts";

/** Which kept NAR files are being sent: they are in use, and stay. */
export class Readers {
  readonly #counts = new Map<NarName, number>();
  readonly #left: () => void;

  /** `left` is told when the last reader of a file is gone. */
  constructor(left: () => void) {
    this.#left = left;
  }

  names(): Iterable<NarName> {
    return this.#counts.keys();
  }

  /** One more, until the result is called. */
  enter(narName: NarName): () => void {
    this.#counts.set(narName, (this.#counts.get(narName) ?? 0) + 1);
    let here = true;
    return () => {
      if (!here) return;
      here = false;
      const left = (this.#counts.get(narName) ?? 1) - 1;
      if (left > 0) return void this.#counts.set(narName, left);
      this.#counts.delete(narName);
      this.#left();
    };
  }
}
