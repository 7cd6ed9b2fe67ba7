/** Bytes reserved for one download. Leaving the scope gives them back. */
export interface Reservation extends Disposable {
  readonly bytes: number;
  /** Reserves `bytes` more; false, without a change, when they do not fit. */
  grow(bytes: number): boolean;
}

/**
 * Used plus reserved bytes never exceed the limit. `observe` sets the used bytes: dispose a
 * reservation in the same turn, so that its bytes count exactly once.
 */
export class SpaceBudget {
  /** `Infinity` without a limit. */
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

  /** The part of the used bytes that pins protect. */
  get pinnedBytes(): number {
    return this.#pinnedBytes;
  }

  get reservedBytes(): number {
    return this.#reservedBytes;
  }

  /** Negative above the limit, for example after the operator lowered it. */
  get freeBytes(): number {
    return this.limitBytes - this.#usedBytes - this.#reservedBytes;
  }

  /** Sets the bytes on disk, as counted last. */
  observe(usedBytes: number, pinnedBytes: number): void {
    this.#usedBytes = usedBytes;
    this.#pinnedBytes = pinnedBytes;
  }

  /** `undefined` when `bytes` do not fit. */
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
