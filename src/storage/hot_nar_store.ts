import { LRUCache } from "lru-cache";
import type { NarName } from "../nix/nar_name.ts";
import type { FileIdentity, NarStore, StoredNar } from "./nar_store.ts";

interface HotNar {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the file that they were read from. */
  readonly identity: FileIdentity;
}

export interface HotNarStoreLimits {
  /** Larger files are always read anew. */
  readonly fileBytesMax: number;
  /** All that is held in memory. */
  readonly totalBytesMax: number;
}

/**
 * Keeps the small files that are asked for again and again in memory. Not for the disk's sake,
 * which has them in memory too: a new buffer for each answer makes the collector run all the time.
 */
export class HotNarStore implements NarStore {
  readonly #inner: NarStore;
  readonly #limits: HotNarStoreLimits;
  readonly #hot: LRUCache<NarName, HotNar>;

  constructor(inner: NarStore, limits: HotNarStoreLimits) {
    this.#inner = inner;
    this.#limits = limits;
    this.#hot = new LRUCache({
      maxSize: limits.totalBytesMax,
      // An empty file counts too, for its entry.
      sizeCalculation: ({ bytes }) => bytes.length + 1,
    });
  }

  async open(name: NarName): Promise<StoredNar | undefined> {
    const hot = this.#hot.get(name);
    if (hot !== undefined) return inMemory(hot);
    const stored = await this.#inner.open(name);
    if (stored === undefined || stored.fileSize > this.#limits.fileBytesMax) return stored;
    const { fileSize, identity } = stored;
    return {
      fileSize,
      identity,
      isUnchanged: () => stored.isUnchanged(),
      bytes: () => {
        const bytes = stored.bytes();
        // What is known of the file is then true of these bytes, for as long as they stay.
        if (stored.isUnchanged()) this.#hot.set(name, { bytes, identity });
        return bytes;
      },
      read: (start, end) => stored.read(start, end),
      [Symbol.dispose]: () => stored[Symbol.dispose](),
    };
  }

  async publish(name: NarName, path: string): Promise<FileIdentity> {
    const identity = await this.#inner.publish(name, path);
    this.#hot.delete(name);
    return identity;
  }

  async remove(name: NarName): Promise<boolean> {
    const removed = await this.#inner.remove(name);
    this.#hot.delete(name);
    return removed;
  }

  list(): AsyncIterable<{ readonly name: NarName; readonly fileSize: number }> {
    return this.#inner.list();
  }
}

function inMemory({ bytes, identity }: HotNar): StoredNar {
  return {
    fileSize: bytes.length,
    identity,
    isUnchanged: () => true,
    bytes: () => bytes,
    read: (start, end) => new Blob([bytes.subarray(start, end)]).stream(),
    [Symbol.dispose]() {},
  };
}
