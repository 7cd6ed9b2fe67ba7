import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { readFully, removeIfPresent } from "../../base/files.ts";

/**
 * The file of a download, open for reading as long as it is in use. The storage may move or remove
 * it at any moment.
 */
export class GrowingFile {
  #path: string;
  readonly #file: Deno.FsFile;
  #users = 0;

  /** Opens an existing file. Call `use` in the same turn. */
  constructor(path: string) {
    this.#path = path;
    this.#file = Deno.openSync(path);
  }

  get path(): string {
    return this.#path;
  }

  /** Renames it. Throws when that fails. */
  rename(path: string): void {
    Deno.renameSync(this.#path, path);
    this.#path = path;
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

  /** Removes its name; open uses still read it. Throws when that fails. */
  remove(): void {
    removeIfPresent(this.#path);
  }

  /** The bytes from `position` on. */
  readAt(position: number, length: number): Bytes {
    const bytes = new Uint8Array(length);
    this.readInto(bytes, position);
    return bytes;
  }

  /**
   * Fills `bytes` from `position` on. Synchronous: fresh bytes are in memory, where another thread
   * costs more than the copy. Nothing can come between seek and read either.
   */
  readInto(bytes: Bytes, position: number): void {
    this.#file.seekSync(position, Deno.SeekMode.Start);
    if (readFully(this.#file, bytes) === bytes.length) return;
    throw new Failure("broken", "Cannot read download: its file is too short");
  }
}
