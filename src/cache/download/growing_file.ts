import type { Bytes } from "../../base/bytes.ts";
import type { BufferLender, ByteSource } from "../../base/direct_stream.ts";
import { Failure } from "../../base/failure.ts";
import { readFully, removeIfPresent } from "../../base/files.ts";
import type { Notifier } from "../../base/notifier.ts";
import { type NarName, parseNarName } from "../../nix/nar_name.ts";
import { files } from "../../runtime/current.ts";
import type { OpenFile } from "../../runtime/files.ts";
import { makePartialFile, RECEIVED_SUFFIX } from "../../storage/spool.ts";

/**
 * The file of a download, open for reading as long as it is in use. The storage may move or remove
 * it at any moment.
 */
export class GrowingFile {
  #path: string;
  readonly #file: OpenFile;
  #users = 0;

  /** Opens an existing file. Call `use` in the same turn. */
  constructor(path: string) {
    this.#path = path;
    this.#file = files.openSync(path);
  }

  get path(): string {
    return this.#path;
  }

  /** Renames it. Throws when that fails. */
  rename(path: string): void {
    files.renameSync(this.#path, path);
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

/** A new growing file. A throw leaves no file behind: descriptors may have run out. */
export function makeGrowingFile(dir: string, nar: NarName): GrowingFile {
  const path = makePartialFile(dir, `${nar}.`);
  try {
    return new GrowingFile(path);
  } catch (error) {
    files.removeSync(path);
    throw error;
  }
}

const PART_REGEXP = /\.part$/;

/** The path of a whole file while the check of its NAR runs. */
export function receivedPath(path: string): string {
  return path.replace(PART_REGEXP, RECEIVED_SUFFIX);
}

/** The NAR name in such a path; `undefined` for another path. */
export function narNameOfReceived(path: string): NarName | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!name.endsWith(RECEIVED_SUFFIX)) return undefined;
  // A random word stands between the name and the end.
  const wordAt = name.lastIndexOf(".", name.length - RECEIVED_SUFFIX.length - 1);
  return parseNarName(name.slice(0, wordAt));
}

interface GrowingSourceParts {
  readonly file: GrowingFile;
  readonly start: number;
  /** Ends with the source. */
  readonly use: Disposable;
  /**
   * The count of bytes that may be read from a position on. 0 is the end; `undefined`: wait for
   * `changed`, and ask again. Throws when the download has failed.
   */
  readonly readable: (position: number) => number | undefined;
  readonly changed: Notifier;
  /** The bytes from a position on after that failure; `undefined`: nobody has them. */
  readonly restAfter: (
    failure: unknown,
    position: number,
  ) => ReadableStream<Bytes> | undefined;
}

/**
 * The bytes of a growing file, and the rest from elsewhere if it fails. State and file are read in
 * one turn, so nothing can change between them.
 */
export class GrowingSource implements ByteSource {
  readonly #parts: GrowingSourceParts;
  #position: number;
  #rest: StreamSource | undefined;
  #isClosed = false;

  constructor(parts: GrowingSourceParts) {
    this.#parts = parts;
    this.#position = parts.start;
  }

  async read(lend: BufferLender): Promise<number> {
    while (!this.#isClosed) {
      if (this.#rest !== undefined) return await this.#rest.read(lend);
      const length = this.#readable();
      if (length === 0) return 0;
      if (length !== undefined) return this.#fill(lend(length), length);
      if (this.#rest === undefined) await this.#parts.changed.notified();
    }
    return 0;
  }

  get heldBytes(): number {
    return this.#rest?.heldBytes ?? 0;
  }

  rewind(byteLength: number): void {
    if (this.#rest !== undefined) this.#rest.rewind(byteLength);
    else this.#position -= byteLength;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#rest?.close();
    this.#parts.use[Symbol.dispose]();
    // Its own read may wait.
    this.#parts.changed.notify();
  }

  #readable(): number | undefined {
    try {
      return this.#parts.readable(this.#position);
    } catch (failure) {
      const rest = this.#parts.restAfter(failure, this.#position);
      if (rest === undefined) throw failure;
      this.#rest = new StreamSource(rest);
      return undefined;
    }
  }

  #fill(buffer: Bytes, length: number): number {
    const bytes = buffer.subarray(0, length);
    this.#parts.file.readInto(bytes, this.#position);
    this.#position += bytes.length;
    return bytes.length;
  }
}

/** Copies the pieces of a stream into the reader's buffer. */
export class StreamSource implements ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Bytes>;
  #piece = new Uint8Array(0);
  #taken = 0;

  constructor(stream: ReadableStream<Bytes>) {
    this.#reader = stream.getReader();
  }

  async read(lend: BufferLender): Promise<number> {
    while (this.#taken === this.#piece.length) {
      const { done, value } = await this.#reader.read();
      if (done) return 0;
      this.#piece = value;
      this.#taken = 0;
    }
    const left = this.#piece.subarray(this.#taken);
    const buffer = lend(left.length);
    const length = Math.min(left.length, buffer.length);
    buffer.set(left.subarray(0, length));
    this.#taken += length;
    return length;
  }

  /** A stalled client keeps the whole piece. */
  get heldBytes(): number {
    return this.#piece.buffer.byteLength;
  }

  rewind(byteLength: number): void {
    this.#taken -= byteLength;
  }

  close(): void {
    this.#piece = new Uint8Array(0);
    this.#taken = 0;
    // The reader is done: nobody needs the error of a stream's end.
    this.#reader.cancel().catch(() => undefined);
  }
}
