import type { Bytes } from "../base/bytes.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";

export interface OpenOptions {
  /** Its abort ends the call with its reason. Bytes in memory do not read it. */
  readonly signal: AbortSignal;
  /** True: opens the stored file, also where its bytes are in memory. */
  readonly fresh?: boolean;
}

export type ReadOptions = Partial<OpenOptions>;

/**
 * A stored NAR file, open for one call of `bytes` or `read`, which releases it at its end, however
 * it ends. The opener disposes of a file that it does not read.
 */
export interface StoredNar extends AsyncDisposable {
  readonly fileSize: number;
  /** Seal at the time of opening. */
  readonly seal: Seal;
  /**
   * How long a change of the file may still leave the seal as it is, in milliseconds: the clock of
   * seals is coarse. Missing: every change makes another one.
   */
  readonly unsettledMs?: number;
  /** True if `bytes` makes no copy: all readers share them. */
  readonly isInMemory?: true;
  /**
   * All bytes of a small file; bytes in memory come without a promise. Rejects if the file has
   * become shorter, or its seal another one.
   */
  bytes(options?: ReadOptions): Bytes | Promise<Bytes>;
  /**
   * The bytes from `start` up to, not including, `end`. The stream fails if the file has become
   * shorter; it never just ends early.
   */
  read(start: number, end: number, options?: ReadOptions): ReadableStream<Bytes>;
}

export interface NarReader {
  /**
   * `undefined` means certainly absent. "Could not tell" is a throw. A reader whose file is removed
   * meanwhile gets all of its bytes, or a read that fails. Once it is open, only the signal of a
   * read ends that read.
   */
  open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined>;
}

export interface NarWriter {
  /**
   * Takes over the finished file at `path` as the object `at`, a name that no object had before.
   * Resolves to its seal when it would survive a power cut. When it throws, a part of it may be
   * there: the caller removes `at`.
   */
  put(at: StoredName, path: string): Promise<Seal>;

  /** False when there was nothing to remove. */
  remove(at: StoredName): Promise<boolean>;

  /** True while the store is known to take no object. A probe finds the end. Default: never. */
  readonly isAway?: boolean;

  /** True while the store is known to answer nothing. A probe finds the end. Default: never. */
  readonly isSilent?: boolean;
}

/** A stored NAR file in a list; without its size unless requested. */
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

/** Locator of objects in a store that other programs can read by themselves. */
export interface NarLocator {
  /** A URL for GET of this very object, for everybody who knows it, valid for `validMs`. */
  locate(at: StoredName, validMs: number): Promise<URL>;
}

export type NarStore = NarReader & NarWriter & NarLister;
