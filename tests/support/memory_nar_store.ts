import type { Bytes } from "../../src/base/bytes.ts";
import { Failure } from "../../src/base/failure.ts";
import type { Seal, StoredName } from "../../src/nix/stored_name.ts";
import type {
  ListedNar,
  ListOptions,
  NarStore,
  OpenOptions,
  StoredNar,
} from "../../src/storage/nar_store.ts";

const PIECE_BYTES = 64 * 1024;

/** The NAR store's contract in a map, for tests above the port. */
export class MemoryNarStore implements NarStore, AsyncDisposable {
  readonly #files = new Map<StoredName, MemoryFile>();
  #putCount = 0;

  async open(at: StoredName, { signal }: OpenOptions): Promise<StoredNar | undefined> {
    signal.throwIfAborted();
    const file = this.#files.get(at);
    return file === undefined ? undefined : storedNar(file);
  }

  async put(at: StoredName, path: string): Promise<Seal> {
    const bytes = await Deno.readFile(path);
    const seal = `${++this.#putCount}` as Seal;
    this.#files.set(at, { bytes, seal });
    await Deno.remove(path);
    return seal;
  }

  async remove(at: StoredName): Promise<boolean> {
    return this.#files.delete(at);
  }

  async *list(prefix: string, { sizes = false }: ListOptions = {}): AsyncIterable<ListedNar> {
    for (const [at, { bytes }] of this.#files) {
      if (at.startsWith(prefix)) yield sizes ? { at, fileSize: bytes.length } : { at };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#files.clear();
  }
}

interface MemoryFile {
  readonly bytes: Bytes;
  readonly seal: Seal;
}

function storedNar({ bytes, seal }: MemoryFile): StoredNar {
  return {
    fileSize: bytes.length,
    seal,
    async bytes({ signal } = {}) {
      signal?.throwIfAborted();
      return bytes.slice();
    },
    read(start, end, { signal } = {}) {
      if (end > bytes.length) throw new Failure("broken", "Cannot read NAR file: it is too short");
      let position = start;
      return new ReadableStream({
        pull(controller) {
          if (position === end) return controller.close();
          signal?.throwIfAborted();
          const piece = bytes.slice(position, Math.min(end, position + PIECE_BYTES));
          position += piece.length;
          controller.enqueue(piece);
        },
      }, { highWaterMark: 0 });
    },
    async [Symbol.asyncDispose]() {},
  };
}
