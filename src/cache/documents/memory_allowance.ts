/** Memory that many may take bytes of, up to a limit. */
export class MemoryAllowance {
  #leftBytes: number;

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** Nothing taken yet. Everything is given back when its scope and every hold have ended. */
  share(): MemoryShare {
    let heldBytes = 0;
    let holds = 0;
    const hold = (): Disposable => {
      holds++;
      let isOver = false;
      return {
        [Symbol.dispose]: () => {
          if (isOver) return;
          isOver = true;
          if (--holds > 0) return;
          this.#leftBytes += heldBytes;
          heldBytes = 0;
        },
      };
    };
    const take = (bytes: number): boolean => {
      if (bytes > this.#leftBytes) return false;
      this.#leftBytes -= bytes;
      heldBytes += bytes;
      return true;
    };
    return { ...hold(), take, hold };
  }
}

export interface MemoryShare extends Disposable {
  /** False, and nothing taken, where the limit would be passed. */
  take(bytes: number): boolean;
  /** Keeps what was taken beyond the share's own scope, for somebody else who has the bytes. */
  hold(): Disposable;
}
