import type { NarName } from "../nix/nar_name.ts";

/** Counts the running reads and downloads of each NAR file; eviction spares these files. */
export class ActiveReads {
  readonly #counts = new Map<NarName, number>();
  readonly #listeners: (() => void)[] = [];

  names(): ReadonlySet<NarName> {
    return new Set(this.#counts.keys());
  }

  has(narName: NarName): boolean {
    return this.#counts.has(narName);
  }

  /** Counts one read more, until the returned function is called. */
  begin(narName: NarName): () => void {
    this.#counts.set(narName, (this.#counts.get(narName) ?? 0) + 1);
    let isActive = true;
    return () => {
      if (!isActive) return;
      isActive = false;
      const left = (this.#counts.get(narName) ?? 1) - 1;
      if (left > 0) return void this.#counts.set(narName, left);
      this.#counts.delete(narName);
      for (const listener of this.#listeners) listener();
    };
  }

  /** Calls `listener` each time that the last read of a file has ended. */
  whenEnded(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
