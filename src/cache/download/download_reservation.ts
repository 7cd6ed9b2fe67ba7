import type { Space } from "../../space/space.ts";
import type { Reservation } from "../../space/space_budget.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { announcedFileSize, fileSizeLimit } from "../nar/nar_naming.ts";

/** What is promised first to a file whose size nobody told; the promise then doubles. */
const FIRST_STEP_BYTES = 1 << 20;

/**
 * The space that one download may take: none until an upstream has answered with the file, since
 * room for it may cost other files their place. Leaving the scope gives back what is not kept.
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

  /** `undefined` when there is no space for it, whatever goes. */
  static async open(
    space: Pick<Space, "budget" | "mayFit" | "reserve" | "grow" | "kept">,
    nar: NarRow,
  ): Promise<DownloadReservation | undefined> {
    const limitBytes = announcedFileSize(nar) ?? fileSizeLimit(nar);
    const firstBytes = announcedFileSize(nar) ?? Math.min(FIRST_STEP_BYTES, limitBytes);
    if (!space.mayFit(firstBytes)) return undefined;
    const reservation = new DownloadReservation(space, firstBytes, limitBytes);
    // Nothing has to go where there is no limit, and nobody has to ask again.
    if (space.budget.limitBytes === Infinity) await reservation.grow(limitBytes);
    return reservation;
  }

  get bytes(): number {
    return this.#reservation?.bytes ?? 0;
  }

  /** Asks for `bytes` in all; resolves to what there is then, less where they do not fit. */
  async grow(bytes: number): Promise<number> {
    const ample = Math.min(this.#limitBytes, Math.max(bytes, 2 * this.bytes, this.#firstBytes));
    for (const wanted of [ample, bytes]) {
      if (wanted <= this.bytes || await this.#take(wanted)) break;
    }
    return this.bytes;
  }

  /** The file is kept: what it takes is counted as used from here on. */
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
