import type { Seal, StoredName } from "../nix/stored_name.ts";

/** A stored NAR file, open for reading. Whoever opened it disposes of it. */
export interface StoredNar extends Disposable {
  readonly fileSize: number;
  /** As it was when it was opened. */
  readonly seal: Seal;
  /** True while nobody has changed the file since it was opened. Looks at it again. */
  isUnchanged(): boolean;
  /** All bytes at once; for small files. A short file is a throw. */
  bytes(): Uint8Array<ArrayBuffer>;
  /**
   * The bytes from `start` up to, not including, `end`. The stream disposes of the file when it
   * ends, fails or is cancelled. Where the file became shorter it fails or ends early: whoever
   * sends it announces the length, and so breaks the transfer.
   */
  read(start: number, end: number): ReadableStream<Uint8Array<ArrayBuffer>>;
}

export interface NarReader {
  /**
   * `undefined` means certainly absent. "Could not tell" is a throw. Whoever has it open gets all
   * of its bytes, or a broken transfer, also when it is removed meanwhile.
   */
  open(at: StoredName): Promise<StoredNar | undefined>;
}

export interface NarWriter {
  /**
   * Takes over the finished file at `path` as the object `at`, a name that no object had before.
   * Resolves to its seal when it would survive a power cut. When it throws, a part of it may be
   * there: whoever called removes `at`.
   */
  put(at: StoredName, path: string): Promise<Seal>;

  /** False when there was nothing to remove. */
  remove(at: StoredName): Promise<boolean>;
}

/** A stored NAR file in a list; without its size where nobody asked for it. */
export interface ListedNar {
  readonly at: StoredName;
  readonly fileSize?: number;
}

export interface ListOptions {
  /** Default: false. Sizes may take longer than names. */
  readonly sizes?: boolean;
}

export interface NarLister {
  /**
   * The stored NAR files whose names begin with `prefix`, in no particular order. "Could not tell"
   * is a throw.
   */
  list(prefix: string, options?: ListOptions): AsyncIterable<ListedNar>;
}

export type NarStore = NarReader & NarWriter & NarLister;
