import { LRUCache } from "lru-cache";
import type { Bytes } from "../base/bytes.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import type { ListedNar, ListOptions, NarStore, OpenOptions, StoredNar } from "./nar_store.ts";

interface HotNar {
  readonly bytes: Bytes;
  /** Seal of the file that they were read from. */
  readonly seal: Seal;
}

export interface HotNarStoreLimits {
  /** Larger files are always read anew. */
  readonly fileBytesMax: number;
  /** All that is held in memory. */
  readonly totalBytesMax: number;
}

/**
 * Keeps small files with frequent requests in memory. The disk cache has them too. But a new buffer
 * for each answer keeps the garbage collector busy.
 */
export class HotNarStore implements NarStore {
  readonly #inner: NarStore;
  readonly #limits: HotNarStoreLimits;
  readonly #hot: LRUCache<StoredName, HotNar>;
  /** A file that was open before a drop may be the dropped one. */
  #drops = 0;

  constructor(inner: NarStore, limits: HotNarStoreLimits) {
    this.#inner = inner;
    this.#limits = limits;
    this.#hot = new LRUCache({
      maxSize: limits.totalBytesMax,
      // An empty file counts too, for its entry.
      sizeCalculation: ({ bytes }) => bytes.length + 1,
    });
  }

  get isAway(): boolean {
    return this.#inner.isAway ?? false;
  }

  get isSilent(): boolean {
    return this.#inner.isSilent ?? false;
  }

  async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
    const hot = options.fresh ? undefined : this.#hot.get(at);
    if (hot !== undefined) return inMemory(hot);
    const stored = await this.#inner.open(at, options);
    // It was lost: from memory, nobody would notice, and fetch it again.
    if (stored === undefined) this.#drop(at);
    if (stored === undefined || stored.fileSize > this.#limits.fileBytesMax) return stored;
    const { fileSize, seal, unsettledMs = 0 } = stored;
    const drops = this.#drops;
    return {
      fileSize,
      seal,
      unsettledMs,
      bytes: async (readOptions) => {
        // They belong to the seal, so a check of the seal holds for them too.
        const bytes = await stored.bytes(readOptions);
        if (this.#drops === drops) this.#hot.set(at, { bytes, seal });
        return bytes;
      },
      read: (start, end, readOptions) => stored.read(start, end, readOptions),
      [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
    };
  }

  put(at: StoredName, path: string): Promise<Seal> {
    return this.#inner.put(at, path);
  }

  async remove(at: StoredName): Promise<boolean> {
    const removed = await this.#inner.remove(at);
    this.#drop(at);
    return removed;
  }

  list(prefix: string, options?: ListOptions): AsyncIterable<ListedNar> {
    return this.#inner.list(prefix, options);
  }

  #drop(at: StoredName): void {
    this.#drops++;
    this.#hot.delete(at);
  }
}

function inMemory({ bytes, seal }: HotNar): StoredNar {
  return {
    fileSize: bytes.length,
    seal,
    isInMemory: true,
    bytes: () => bytes,
    read: (start, end) => new Blob([bytes.subarray(start, end)]).stream(),
    async [Symbol.asyncDispose]() {},
  };
}
