import type { Space } from "../../space/space.ts";
import type { Reservation } from "../../space/space_budget.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { announcedFileSize, fileSizeLimit } from "../nar/nar_naming.ts";

/** The first reservation for a file of unknown size; later ones double it. */
const FIRST_STEP_BYTES = 1 << 20;

/**
 * The space of one download: none until an upstream has answered with the file, since room may
 * cost other files theirs. Leaving the scope gives back the bytes that are not kept.
 */
export class DownloadReservation implements Disposable {
  readonly #space: Pick<Space, "reserve" | "grow" | "kept">;
  readonly #firstBytes: number;
  readonly #limitBytes: number;
  #reservation: Reservation | undefined;

  private constructor(
    space: Pick<Space, "reserve" | "grow" | "kept">,
    firstBytes: number,
    limitBytes: number,
  ) {
    this.#space = space;
    this.#firstBytes = firstBytes;
    this.#limitBytes = limitBytes;
  }

  /** `undefined` when no eviction can make enough space. */
  static async open(
    space: Pick<Space, "budget" | "mayFit" | "reserve" | "grow" | "kept">,
    nar: NarRow,
  ): Promise<DownloadReservation | undefined> {
    const limitBytes = announcedFileSize(nar) ?? fileSizeLimit(nar);
    const firstBytes = announcedFileSize(nar) ?? Math.min(FIRST_STEP_BYTES, limitBytes);
    if (!space.mayFit(firstBytes)) return undefined;
    const reservation = new DownloadReservation(space, firstBytes, limitBytes);
    // Without a limit one reservation covers every size.
    if (space.budget.limitBytes === Infinity) await reservation.grow(limitBytes);
    return reservation;
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
    const ample = Math.min(this.#limitBytes, Math.max(bytes, 2 * this.bytes, this.#firstBytes));
    for (const wanted of [ample, bytes]) {
      if (wanted <= this.bytes || await this.#take(wanted)) break;
    }
    return this.bytes;
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
