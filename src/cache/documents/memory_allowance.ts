/** Memory that many may take bytes of, up to a limit. */
export class MemoryAllowance {
  #leftBytes: number;

  constructor(bytesMax: number) {
    this.#leftBytes = bytesMax;
  }

  /** Nothing taken yet. Leaving the scope gives everything back. */
  share(): MemoryShare {
    let held = 0;
    return {
      take: (bytes) => {
        if (bytes > this.#leftBytes) return false;
        this.#leftBytes -= bytes;
        held += bytes;
        return true;
      },
      [Symbol.dispose]: () => {
        this.#leftBytes += held;
        held = 0;
      },
    };
  }
}

export interface MemoryShare extends Disposable {
  /** False, and nothing taken, where the limit would be passed. */
  take(bytes: number): boolean;
}
