import { createHash } from "node:crypto";
import type { Bytes } from "../../base/bytes.ts";
import { removeIfPresent, writeFully } from "../../base/files.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { files } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";
import { FIRST_STEP_BYTES, GrowingReservation } from "../../space/growing_reservation.ts";
import { limitOrigin, type SizeLimit } from "../../space/size_limit.ts";
import type { Space } from "../../space/space.ts";
import { makePartialFile } from "../../storage/spool.ts";
import { UploadRefused } from "./upload_body.ts";

export interface SpoolFileParts {
  readonly narName: NarName;
  /** This member's folder in the spool. */
  readonly folder: string;
  readonly space: Pick<Space, "fits" | "reserve" | "grow" | "kept" | "budget">;
  /** The announced size. */
  readonly length: number | undefined;
}

/**
 * The growing file of one upload, in reserved space: a step for the bytes that came, since a client
 * may announce more than it sends, and others lose files for it. Leaving the scope removes the file,
 * unless the storage has taken it, and gives the space back.
 */
export class SpoolFile implements Disposable {
  readonly path: string;
  readonly #file: OpenFile;
  readonly #space: SpoolFileParts["space"];
  readonly #reservation: GrowingReservation;
  readonly #hash = createHash("sha256");
  #fileSize = 0;
  #isClosed = false;

  private constructor(
    path: string,
    space: SpoolFileParts["space"],
    reservation: GrowingReservation,
  ) {
    this.path = path;
    this.#space = space;
    this.#reservation = reservation;
    this.#file = files.openSync(path, { write: true });
  }

  /** Throws UploadRefused where its announced size does not fit. */
  static async open({ narName, folder, space, length }: SpoolFileParts): Promise<SpoolFile> {
    const { limit } = space.budget;
    const limitBytes = limit.bytes;
    if ((length ?? 0) > limitBytes) throw tooLarge(limit);
    if (!await space.fits(length ?? 0)) throw noRoom();
    using held = new DisposableStack();
    const sizes = { firstBytes: FIRST_STEP_BYTES, limitBytes: length ?? limitBytes };
    const reservation = held.use(new GrowingReservation(space, sizes));
    const path = makePartialFile(folder, `${narName}.`);
    held.defer(() => files.removeSync(path));
    const file = new SpoolFile(path, space, reservation);
    held.move();
    return file;
  }

  get fileSize(): number {
    return this.#fileSize;
  }

  /** Hash of the bytes so far. */
  get fileHash(): Sha256 {
    return sha256FromDigest(this.#hash.copy().digest());
  }

  /** Throws UploadRefused where the bytes do not fit. */
  async write(bytes: Bytes): Promise<void> {
    await this.#reserve(this.#fileSize + bytes.length);
    await writeFully(this.#file, bytes);
    this.#hash.update(bytes);
    this.#fileSize += bytes.length;
  }

  /** Its bytes in the ledger; `undefined` without a limit. */
  get ledgerBytes(): number | undefined {
    return this.#reservation.ledgerBytes;
  }

  /** Counts the bytes as used from now on: the storage has taken the file. */
  async kept(): Promise<void> {
    await this.#reservation.kept();
  }

  /** Ends writing. */
  close(): void {
    if (!this.#isClosed) this.#file.close();
    this.#isClosed = true;
  }

  [Symbol.dispose](): void {
    this.close();
    try {
      removeIfPresent(this.path);
    } finally {
      this.#reservation[Symbol.dispose]();
    }
  }

  async #reserve(bytes: number): Promise<void> {
    if (bytes <= this.#reservation.bytes) return;
    const { limit } = this.#space.budget;
    if (bytes > limit.bytes) throw tooLarge(limit);
    if (await this.#reservation.grow(bytes) < bytes) throw noRoom();
  }
}

function tooLarge({ bytes, source, reserveBytes }: SizeLimit): UploadRefused {
  const origin = limitOrigin(source, reserveBytes);
  return new UploadRefused(
    "too-large",
    `expected at most ${bytes} bytes, the size limit (${origin})`,
  );
}

function noRoom(): UploadRefused {
  return new UploadRefused("no-room", "expected room below the size limit, and there is none now");
}
