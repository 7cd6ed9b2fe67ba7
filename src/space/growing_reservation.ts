import type { Space } from "./space.ts";
import type { Reservation } from "./size_limit.ts";

/** The first reservation for a file of unknown size; each further one doubles it. */
export const FIRST_STEP_BYTES = 1 << 20;

export type GrowingSpace = Pick<Space, "reserve" | "grow" | "kept">;
export type SpareSpace = Pick<Space, "reserveSpare" | "growSpare">;

export interface FileSizes {
  /** The least that the first step reserves. */
  readonly firstBytes: number;
  /** The file has no more. */
  readonly limitBytes: number;
}

/**
 * The space of one file that grows: none before the first `grow`, since room may cost other files
 * theirs. Leaving the scope gives back the bytes that are not kept.
 */
export class GrowingReservation implements Disposable {
  #space: GrowingSpace;
  #sizes: FileSizes;
  #reservation: Reservation | undefined;

  constructor(space: GrowingSpace, sizes: FileSizes) {
    this.#space = space;
    this.#sizes = sizes;
  }

  get bytes(): number {
    return this.#reservation?.bytes ?? 0;
  }

  /** The same in the ledger; `undefined` without a limit. */
  get ledgerBytes(): number | undefined {
    return this.#reservation?.ledgerBytes;
  }

  /** Reserves `bytes` in all. Resolves to the reserved bytes: fewer where they do not fit. */
  async grow(bytes: number): Promise<number> {
    const { firstBytes, limitBytes } = this.#sizes;
    const ample = Math.min(limitBytes, Math.max(bytes, 2 * this.bytes, firstBytes));
    for (const wanted of new Set([ample, bytes])) {
      if (wanted <= this.bytes || await this.#take(wanted)) break;
    }
    return this.bytes;
  }

  /**
   * The file has up to `limitBytes`, and may be wrong: from now on nothing goes for it that was
   * used within the hour.
   */
  doubt(limitBytes: number, spare: SpareSpace): void {
    const space = this.#space;
    this.#sizes = { ...this.#sizes, limitBytes };
    this.#space = {
      reserve: (bytes) => spare.reserveSpare(bytes),
      grow: (reservation, bytes) => spare.growSpare(reservation, bytes),
      kept: (reservation) => space.kept(reservation),
    };
  }

  /** Counts the kept file's bytes as used from now on. */
  async kept(): Promise<void> {
    if (this.#reservation !== undefined) await this.#space.kept(this.#reservation);
  }

  [Symbol.dispose](): void {
    this.#reservation?.[Symbol.dispose]();
  }

  async #take(bytes: number): Promise<boolean> {
    if (this.#reservation !== undefined) {
      return await this.#space.grow(this.#reservation, bytes - this.bytes);
    }
    this.#reservation = await this.#space.reserve(bytes);
    return this.#reservation !== undefined;
  }
}
