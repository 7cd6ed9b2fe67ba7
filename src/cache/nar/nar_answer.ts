import type { Bytes } from "../../base/bytes.ts";
import type { StoredName } from "../../nix/stored_name.ts";
import type { OpenOptions, ReadOptions } from "../../storage/nar_store.ts";

/** The origin of an answer, as the header X-Cache names it. */
export type CacheResult = "HIT" | "MISS" | "JOINED";

/** Files up to this size are sent in one piece: many small writes cost more than the copy. */
export const WHOLE_BYTES_MAX = 512 * 1024;

/**
 * The longest wait for all of such a file, and for the first byte of a part, from the first byte of
 * the file on. Then the answer begins with what is here.
 */
export const WHOLE_WAIT_MS = 1_000;

/** Larger stored files leave through shared buffers: each stalled client would keep its copy. */
export const STORED_WHOLE_BYTES_MAX = 256 * 1024;

/** The facts of a NAR file before its bytes. */
export interface NarFacts {
  readonly cacheResult: CacheResult;
  /** `undefined` while the upstream does not say. */
  readonly fileSize: number | undefined;
  /** An entity tag of these very bytes; `undefined` until they are known. */
  readonly tag: string | undefined;
  /** Size of the file that it is made of, where that has another form. */
  readonly madeOfBytes?: number | undefined;
  /** True for the first GET of a prefetched file, and for each HEAD before it. */
  readonly isFirstOfPrefetch?: boolean;
}

export interface WholeOptions extends ReadOptions {
  /** True: no copy, only bytes that all readers share. */
  readonly savesMemory?: boolean;
}

/**
 * A NAR file to send, for one read: `whole`, or `read` if that returned nothing. The holder
 * disposes of an answer that it does not read. A signal ends reads of the store; cancelling the
 * stream ends every read.
 */
export interface NarAnswer extends NarFacts, AsyncDisposable {
  /** The whole file, if it is small and all here; bytes in memory come without a promise. */
  whole(
    options?: WholeOptions,
  ): Bytes | Promise<Bytes> | undefined;
  /**
   * Bytes from `start` up to `end` (default: the end). Resolves when the first byte is there, or
   * late.
   */
  read(
    start: number,
    end?: number,
    options?: ReadOptions,
  ): Promise<ReadableStream<Bytes>>;
  /**
   * The stored object, for another server that sends it in place of a read. Eviction spares it for
   * some seconds. `undefined` for bytes that are not in a file, or are in memory.
   */
  readonly handOver?: (() => Promise<StoredName>) | undefined;
  /**
   * Where set, call it when the bytes are sent, or will never be. `isWhole`: the client got all of
   * them.
   */
  readonly release?: (isWhole: boolean) => void;
}

/** The client of a request. */
export interface Client extends OpenOptions {
  /** Its address; `undefined` if unknown. */
  readonly peer?: string;
  /** Aborts also when the client has ended its side: expensive work ends. Default: `signal`. */
  readonly hungUp?: AbortSignal;
}

/** A client, and the id of its request. */
export interface Requester {
  readonly requestId: string;
  readonly client: Client;
}
