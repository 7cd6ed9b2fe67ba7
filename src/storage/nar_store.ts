import type { NarName } from "../nix/nar_name.ts";

/**
 * Which file it is, and how it was last changed: bytes that are changed behind us make it another
 * one. Numbers that the file system tells without reading.
 */
export interface FileIdentity {
  readonly inode: number;
  readonly fileSize: number;
  readonly modifiedAtMs: number;
  readonly changedAtMs: number;
}

/** A kept NAR file, open for reading. Whoever opened it disposes of it. */
export interface StoredNar extends Disposable {
  readonly fileSize: number;
  /** As it was when it was opened. */
  readonly identity: FileIdentity;
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
  /** `undefined` means certainly absent. "Could not tell" is a throw. */
  open(name: NarName): Promise<StoredNar | undefined>;
}

export interface NarWriter {
  /**
   * Takes over the finished file at `path` as the NAR file `name`, replacing what was there, and
   * resolves when it would survive a power cut, to the identity that it has there. When it
   * throws, `path` and `name` are as before.
   */
  publish(name: NarName, path: string): Promise<FileIdentity>;

  /** False when there was nothing to remove. */
  remove(name: NarName): Promise<boolean>;
}

export interface NarLister {
  /** Every kept NAR file, in no particular order. */
  list(): AsyncIterable<{ readonly name: NarName; readonly fileSize: number }>;
}

export type NarStore = NarReader & NarWriter & NarLister;

export function isSameIdentity(a: FileIdentity, b: FileIdentity): boolean {
  return a === b ||
    a.inode === b.inode && a.fileSize === b.fileSize && a.modifiedAtMs === b.modifiedAtMs &&
      a.changedAtMs === b.changedAtMs;
}
