import type { Space } from "../../lru/space.ts";
import type { Reservation } from "../../lru/space_budget.ts";
import type { NarRow } from "../../metadata/metadata_store.ts";
import { announcedFileSize } from "../nar_naming.ts";

/** What is promised first to a file whose size nobody told; the promise then doubles. */
const FIRST_STEP_BYTES = 1 << 20;

/** The space that one download may take. Leaving the scope gives back what is not kept. */
export class DownloadRoom implements Disposable {
  readonly #space: Pick<Space, "grow" | "kept">;
  readonly #reservation: Reservation;
  readonly #limitBytes: number;

  private constructor(
    space: Pick<Space, "grow" | "kept">,
    reservation: Reservation,
    limitBytes: number,
  ) {
    this.#space = space;
    this.#reservation = reservation;
    this.#limitBytes = limitBytes;
  }

  /** `undefined` when there is no space for it. */
  static async open(
    space: Pick<Space, "reserve" | "grow" | "kept">,
    nar: NarRow,
  ): Promise<DownloadRoom | undefined> {
    const limitBytes = announcedFileSize(nar) ?? fileSizeLimit(nar);
    const firstBytes = announcedFileSize(nar) ?? Math.min(FIRST_STEP_BYTES, limitBytes);
    const reservation = await space.reserve(firstBytes);
    return reservation && new DownloadRoom(space, reservation, limitBytes);
  }

  get bytes(): number {
    return this.#reservation.bytes;
  }

  /** Asks for `bytes` in all; resolves to what there is then, less where they do not fit. */
  async grow(bytes: number): Promise<number> {
    const ample = Math.min(this.#limitBytes, Math.max(bytes, 2 * this.bytes));
    for (const wanted of [ample, bytes]) {
      const more = wanted - this.bytes;
      if (more <= 0 || await this.#space.grow(this.#reservation, more)) break;
    }
    return this.bytes;
  }

  /** The file is kept: what it takes is counted as used from here on. */
  async kept(): Promise<void> {
    await this.#space.kept(this.#reservation);
  }

  [Symbol.dispose](): void {
    this.#reservation[Symbol.dispose]();
  }
}

/** No compression makes a file much larger than what it holds; of 0 bytes it is not known. */
export function fileSizeLimit({ narSize }: NarRow): number {
  return narSize === 0 ? Infinity : narSize + Math.ceil(narSize / 8) + 65_536;
}
