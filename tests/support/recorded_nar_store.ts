import type { StoredName } from "../../src/nix/stored_name.ts";
import type { ListOptions, NarStore, OpenOptions, StoredNar } from "../../src/storage/nar_store.ts";

/** A NAR store that records which parts of its files are read. */
export class RecordedNarStore implements NarStore {
  readonly reads: (readonly [start: number, end: number])[] = [];
  readonly #inner: NarStore;

  constructor(inner: NarStore) {
    this.#inner = inner;
  }

  async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
    const stored = await this.#inner.open(at, options);
    if (stored === undefined) return undefined;
    const { fileSize, seal } = stored;
    return {
      fileSize,
      seal,
      bytes: (readOptions) => {
        this.reads.push([0, fileSize]);
        return stored.bytes(readOptions);
      },
      read: (start, end, readOptions) => {
        this.reads.push([start, end]);
        return stored.read(start, end, readOptions);
      },
      [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
    };
  }

  put(at: StoredName, path: string) {
    return this.#inner.put(at, path);
  }

  remove(at: StoredName): Promise<boolean> {
    return this.#inner.remove(at);
  }

  list(prefix: string, options?: ListOptions) {
    return this.#inner.list(prefix, options);
  }
}
