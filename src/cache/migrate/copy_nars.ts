import pLimit from "p-limit";
import { digestOf } from "../../base/digest_of.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { writeFully } from "../../base/files.ts";
import type {
  ChangeWriter,
  KeptLister,
  KeptNar,
  NarFinder,
} from "../../metadata/metadata_store.ts";
import { type Sha256, sha256FromDigest } from "../../nix/hash.ts";
import { NIX32_ALPHABET } from "../../nix/nix32.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import { dice, files } from "../../runtime/current.ts";
import type { NarStore, OpenOptions, StoredNar } from "../../storage/nar_store.ts";

/** Files in flight. A store may take fewer side by side. */
const FILES_AT_ONCE = 8;

/** Requests for seals in flight. */
const SEALS_AT_ONCE = 16;

/** A file of this size may have left parts in the new store, if an earlier copy died. */
const PARTS_BYTES = 5 << 20;

/** The names of all NAR files begin with one of these. */
const PREFIXES = [...NIX32_ALPHABET];

export interface NarCopyDeps {
  readonly metadata: KeptLister & Pick<NarFinder, "findNar"> & ChangeWriter;
  readonly from: NarStore;
  readonly to: NarStore;
  /** A folder of this copy alone, for files that are being checked. */
  readonly folder: string;
}

export interface NarCopyProgress {
  /** Files that this pass has compared. */
  readonly compared: number;
  /** Files that it has copied, and their bytes. */
  readonly copied: number;
  readonly copiedBytes: number;
}

/** A file that the old store has not as its row says. The new store does not get it. */
export interface NotCopied {
  readonly at: StoredName;
  readonly reason: string;
}

/** The bytes of the old store cannot be read, or are not those of the row. */
class WrongFile extends Error {}

/**
 * Copies the NAR files of a database from one store into another, under their own names. Each is
 * compared with the hash and the size of its row before the new store has it. Names are never used
 * again: a file that is there already stays, so a copy that ended early goes on where it was.
 */
export class NarCopy {
  readonly #deps: NarCopyDeps;
  readonly #files = pLimit(FILES_AT_ONCE);
  readonly #seals = pLimit(SEALS_AT_ONCE);
  #progress: NarCopyProgress = { compared: 0, copied: 0, copiedBytes: 0 };
  #notCopied: NotCopied[] = [];

  constructor(deps: NarCopyDeps) {
    this.#deps = deps;
  }

  get progress(): NarCopyProgress {
    return this.#progress;
  }

  /** NAR files that the last pass did not copy. */
  get notCopied(): readonly NotCopied[] {
    return this.#notCopied;
  }

  /**
   * Copies the files that the new store lacks. Throws if a store does not answer, or the signal's
   * reason.
   */
  async pass(signal: AbortSignal): Promise<NarCopyProgress> {
    this.#progress = { compared: 0, copied: 0, copiedBytes: 0 };
    this.#notCopied = [];
    for (const prefix of PREFIXES) {
      signal.throwIfAborted();
      const rows = await this.#deps.metadata.keptNars(prefix);
      if (rows.length === 0) continue;
      const sizes = await this.#sizes(prefix);
      await all(
        rows.map((row) => this.#files(() => this.#copyMissing(row, sizes.get(row.at), { signal }))),
      );
    }
    return this.#progress;
  }

  /**
   * Writes the seals of the new store into the rows. Otherwise a server hashes each file before its
   * first byte. Call it when no server uses the old store.
   */
  async seal(signal: AbortSignal): Promise<void> {
    const { metadata, to } = this.#deps;
    const seal = async (row: KeptNar) => {
      signal.throwIfAborted();
      await using stored = await to.open(row.at, { signal });
      if (stored === undefined || stored.fileSize !== row.fileSize) return;
      if (stored.seal === row.seal) return;
      await metadata.apply([{ kind: "nar-sealed", at: row.at, seal: stored.seal }]);
    };
    for (const prefix of PREFIXES) {
      const rows = await metadata.keptNars(prefix);
      await all(rows.map((row) => this.#seals(() => seal(row))));
    }
  }

  async #sizes(prefix: string): Promise<ReadonlyMap<StoredName, number>> {
    const sizes = new Map<StoredName, number>();
    for await (const { at, fileSize = 0 } of this.#deps.to.list(prefix, { sizes: true })) {
      sizes.set(at, fileSize);
    }
    return sizes;
  }

  async #copyMissing(
    row: KeptNar,
    thereBytes: number | undefined,
    options: OpenOptions,
  ): Promise<void> {
    options.signal.throwIfAborted();
    if (thereBytes !== row.fileSize) await this.#copyOrNote(row, thereBytes, options);
    this.#progress = { ...this.#progress, compared: this.#progress.compared + 1 };
  }

  async #copyOrNote(
    row: KeptNar,
    thereBytes: number | undefined,
    options: OpenOptions,
  ): Promise<void> {
    const path = `${this.#deps.folder}/${dice.uuid()}`;
    try {
      if (await this.#take(row, path, options)) await this.#put(row, path, thereBytes);
    } catch (error) {
      if (!(error instanceof WrongFile)) throw error;
      this.#notCopied.push({ at: row.at, reason: error.message });
    } finally {
      await files.remove(path).catch(() => undefined);
    }
  }

  async #put({ at, fileSize }: KeptNar, path: string, thereBytes?: number): Promise<void> {
    const { to } = this.#deps;
    if (thereBytes !== undefined || fileSize > PARTS_BYTES) await to.remove(at);
    await to.put(at, path);
    const { copied, copiedBytes } = this.#progress;
    const sums = { copied: copied + 1, copiedBytes: copiedBytes + fileSize };
    this.#progress = { ...this.#progress, ...sums };
  }

  /** The right bytes in a file at `path`. False for an object that was removed meanwhile. */
  async #take(row: KeptNar, path: string, options: OpenOptions): Promise<boolean> {
    const { metadata, from } = this.#deps;
    await using stored = await readable(() => from.open(row.at, options));
    if (stored === undefined) {
      const kept = (await metadata.findNar(row.name, { fresh: true }))?.kept;
      if (kept?.at === row.at) throw new WrongFile("it is missing");
      return false;
    }
    if (stored.fileSize !== row.fileSize) {
      throw new WrongFile(`it has ${stored.fileSize} bytes, not ${row.fileSize}`);
    }
    if (await received(stored, path, options) === row.fileHash) return true;
    throw new WrongFile("its bytes have changed");
  }
}

/** Writes the bytes into a new file. Resolves to their hash. */
async function received(stored: StoredNar, path: string, options: OpenOptions): Promise<Sha256> {
  using file = await files.open(path, { write: true, createNew: true });
  const digest = await digestOf(piecesOf(stored, options), (piece) => writeFully(file, piece));
  return sha256FromDigest(digest);
}

async function* piecesOf(stored: StoredNar, options: OpenOptions): AsyncGenerator<Uint8Array> {
  const reader = stored.read(0, stored.fileSize, options).getReader();
  for (;;) {
    const { done, value } = await readable(() => reader.read());
    if (done) return;
    yield value;
  }
}

/** The value that `read` gives. A silent store ends the copy; a broken file does not. */
async function readable<Value>(read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Failure && error.kind === "unavailable") throw error;
    if (error instanceof DOMException) throw error;
    throw new WrongFile(messageOf(error));
  }
}

/** Waits for all, also where one fails: no work goes on behind the caller. */
async function all(works: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(works);
  await Promise.all(works);
}
