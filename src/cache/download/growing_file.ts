import { Failure } from "../../base/failure.ts";
import { readFully } from "../../base/read_fully.ts";

/**
 * The file that a download grows in, open for reading as long as anybody uses it: it may be moved
 * into the store, or removed, at any moment.
 */
export class GrowingFile {
  readonly path: string;
  readonly #file: Deno.FsFile;
  #users = 0;

  /** Opens an existing file. Whoever makes it must `use` it before anything is awaited. */
  constructor(path: string) {
    this.path = path;
    this.#file = Deno.openSync(path);
  }

  /** Keeps the file open until the scope of the result ends. */
  use(): Disposable {
    this.#users++;
    let using = true;
    return {
      [Symbol.dispose]: () => {
        if (using && --this.#users === 0) this.#file.close();
        using = false;
      },
    };
  }

  /** Takes its name away; whoever uses it still can. Throws when that fails. */
  remove(): void {
    try {
      Deno.removeSync(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  /**
   * The bytes from `position` on. Synchronous: what was just written is in memory, where a hop to
   * another thread costs more than the copy, and seeking and reading cannot be torn apart.
   */
  readAt(position: number, length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    this.#file.seekSync(position, Deno.SeekMode.Start);
    if (readFully(this.#file, bytes) === length) return bytes;
    throw new Failure("broken", "Cannot read download: its file is too short");
  }
}
