import { Failure, reasonOf } from "../../base/failure.ts";
import { dice, files } from "../../runtime/current.ts";
import { formatMark, MARK_NAME, parseMark } from "../storage_mark.ts";
import type { StorageMark, StorageMarks } from "../storage_mark.ts";
import { moveDurably } from "./durable_move.ts";

/** The mark of a folder of NAR files, as a file in it. */
export class LocalMarks implements StorageMarks {
  readonly #folder: string;
  readonly #path: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#path = `${folder}/${MARK_NAME}`;
  }

  async read(): Promise<StorageMark | undefined> {
    try {
      return parseMark(await files.readTextFile(this.#path));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      if (error instanceof Failure) throw error;
      const reason = reasonOf(error);
      throw new Failure("broken", `Cannot read ${this.#path}: ${reason}`, {}, error);
    }
  }

  async claim(mark: StorageMark): Promise<StorageMark> {
    const written = await this.#write(mark);
    try {
      // Unlike a rename, a link never replaces a file.
      await files.link(written, this.#path);
    } catch (error) {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    } finally {
      await files.remove(written);
    }
    return await this.read() ?? mark;
  }

  async replace(mark: StorageMark): Promise<void> {
    await moveDurably(await this.#write(mark), this.#path);
  }

  /** A file with the mark, under a name of its own. */
  async #write(mark: StorageMark): Promise<string> {
    await files.mkdir(this.#folder, { recursive: true });
    const path = `${this.#path}.${dice.uuid()}`;
    await files.writeTextFile(path, formatMark(mark), { createNew: true });
    using file = await files.open(path);
    await file.sync();
    return path;
  }
}
