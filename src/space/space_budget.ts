/** Bytes promised to one download before they are written. Leaving the scope gives them back. */
export interface Reservation extends Disposable {
  readonly bytes: number;
  /** Promises `bytes` more; false, and nothing changed, when they do not fit. */
  grow(bytes: number): boolean;
}

/**
 * What is used plus what is promised never exceeds the limit. What is used is told from outside:
 * a promise that is given back in the same breath is never counted twice, nor not at all.
 */
export class SpaceBudget {
  /** `Infinity` where there is no limit. */
  readonly limitBytes: number;
  #usedBytes = 0;
  #pinnedBytes = 0;
  #reservedBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Those of the used bytes that pins hold. */
  get pinnedBytes(): number {
    return this.#pinnedBytes;
  }

  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  /** Negative where more is used than the limit allows: it was lowered, say. */
  get freeBytes(): number {
    return this.limitBytes - this.#usedBytes - this.#reservedBytes;
  }

  /** What is on disk, as it was counted last. */
  observe(usedBytes: number, pinnedBytes: number): void {
    this.#usedBytes = usedBytes;
    this.#pinnedBytes = pinnedBytes;
  }

  /** `undefined` when it does not fit. */
  take(bytes: number): Reservation | undefined {
    let held = 0;
    const grow = (more: number): boolean => {
      if (more > this.freeBytes) return false;
      held += more;
      this.#reservedBytes += more;
      return true;
    };
    if (!grow(bytes)) return undefined;
    return {
      get bytes() {
        return held;
      },
      grow,
      [Symbol.dispose]: () => {
        this.#reservedBytes -= held;
        held = 0;
      },
    };
  }
}
