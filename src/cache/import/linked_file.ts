import { digestOf, filePieces } from "../../base/digest_of.ts";
import { Failure } from "../../base/failure.ts";
import { removeIfPresent } from "../../base/files.ts";
import type { ForeignFile } from "./foreign_file.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import type { Space } from "../../space/space.ts";
import type { Reservation } from "../../space/space_budget.ts";

/** Nobody else opens it from here on. */
const OWN_MODE = 0o600;

/** Origin and place of a linked file. */
export interface LinkedFileParts {
  /** The file of the other cache, which belongs to this user. */
  readonly from: ForeignFile;
  /** The path of the link. */
  readonly path: string;
  readonly space: Pick<Space, "kept">;
  /** Reservation of the file's size. */
  readonly reservation: Reservation;
}

/**
 * A second name of another cache's file. Leaving the scope removes that name, unless the storage
 * has taken it, and gives the space back.
 */
export class LinkedFile implements Disposable {
  readonly path: string;
  readonly #from: ForeignFile;
  readonly #space: Pick<Space, "kept">;
  readonly #reservation: Reservation;

  /** Throws where the file system cannot link it, or another file has its name now. */
  constructor({ from, path, space, reservation }: LinkedFileParts) {
    Deno.linkSync(from.place.path, path);
    try {
      if (!from.isAt(path)) {
        throw new Failure("absent", `Cannot read ${from.place.path}: it was replaced meanwhile`);
      }
      Deno.chmodSync(path, OWN_MODE);
    } catch (error) {
      removeIfPresent(path);
      throw error;
    }
    this.path = path;
    this.#from = from;
    this.#space = space;
    this.#reservation = reservation;
  }

  get ledgerBytes(): number | undefined {
    return this.#reservation.ledgerBytes;
  }

  /** Reads the whole file. Throws where it grows: a holder could write it without end. */
  async measured(
    signal: AbortSignal,
  ): Promise<{ readonly fileHash: Sha256; readonly fileSize: number }> {
    let fileSize = 0;
    const digest = await digestOf(filePieces(this.path), ({ length }) => {
      signal.throwIfAborted();
      fileSize += length;
      if (fileSize > this.#from.fileSize) {
        throw new Failure("absent", `Cannot read ${this.#from.place.path}: it became larger`);
      }
    });
    return { fileHash: sha256FromDigest(digest), fileSize };
  }

  /** Counts the bytes as used from now on: the storage has taken the file. */
  async kept(): Promise<void> {
    await this.#space.kept(this.#reservation);
  }

  [Symbol.dispose](): void {
    try {
      removeIfPresent(this.path);
    } finally {
      this.#reservation[Symbol.dispose]();
    }
  }
}
