import type { CacheResult } from "./cache_result.ts";

/** Files up to this size are sent in one piece: many small writes cost more than the copy. */
export const WHOLE_BYTES_MAX = 512 * 1024;

/** What there is to say of a NAR file before its bytes. */
export interface NarFacts {
  readonly source: CacheResult;
  /** `undefined` while the upstream does not say. */
  readonly fileSize: number | undefined;
  /** Names these very bytes; `undefined` until they are known. */
  readonly tag: string | undefined;
}

/** A NAR file to send. Dispose of it when `read` was not called. */
export interface NarAnswer extends NarFacts, Disposable {
  /** The whole file, where it is small and all here. */
  whole(): Uint8Array<ArrayBuffer> | undefined;
  /** From `start` up to `end` (default: the end). Resolves when the first byte is there. */
  read(start: number, end?: number): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
  /** Where it is there: to be called when what was read is out, or will never be. */
  readonly over?: () => void;
}
