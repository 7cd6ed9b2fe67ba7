import type { NarName } from "../nix/nar_name.ts";

/** A kept NAR file, open for reading. Whoever opened it disposes of it. */
export interface StoredNar extends Disposable {
  readonly fileSize: number;
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
  /** `undefined` means certainly absent. "Could not tell" is a throw. */
  open(name: NarName): Promise<StoredNar | undefined>;
}

export interface NarWriter {
  /**
   * Takes over the finished file at `path` as the NAR file `name`, replacing what was there, and
   * resolves when it would survive a power cut. When it throws, `path` and `name` are as before.
   */
  publish(name: NarName, path: string): Promise<void>;

  /** False when there was nothing to remove. */
  remove(name: NarName): Promise<boolean>;
}

export interface NarLister {
  /** Every kept NAR file, in no particular order. */
  list(): AsyncIterable<{ readonly name: NarName; readonly fileSize: number }>;
}

export type NarStore = NarReader & NarWriter & NarLister;
