import type { NarName } from "../../src/nix/nar_name.ts";
import { Failure } from "../../src/base/failure.ts";
import type { FileIdentity, NarStore, StoredNar } from "../../src/storage/nar_store.ts";

/** The NAR store's contract in a map, for tests above the port. */
export class MemoryNarStore implements NarStore, AsyncDisposable {
  readonly #files = new Map<NarName, MemoryFile>();
  #lastInode = 0;

  async open(name: NarName): Promise<StoredNar | undefined> {
    const file = this.#files.get(name);
    return file === undefined ? undefined : storedNar(file);
  }

  async publish(name: NarName, path: string): Promise<FileIdentity> {
    const bytes = await Deno.readFile(path);
    const inode = ++this.#lastInode;
    const identity = { inode, fileSize: bytes.length, modifiedAtMs: 0, changedAtMs: 0 };
    this.#files.set(name, { bytes, identity });
    await Deno.remove(path);
    return identity;
  }

  async remove(name: NarName): Promise<boolean> {
    return this.#files.delete(name);
  }

  async *list(): AsyncIterable<{ name: NarName; fileSize: number }> {
    for (const [name, { bytes }] of this.#files) yield { name, fileSize: bytes.length };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#files.clear();
  }
}

interface MemoryFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly identity: FileIdentity;
}

function storedNar({ bytes, identity }: MemoryFile): StoredNar {
  return {
    fileSize: bytes.length,
    identity,
    isUnchanged: () => true,
    bytes: () => bytes.slice(),
    read(start, end) {
      if (end > bytes.length) throw new Failure("broken", "Cannot read NAR file: it is too short");
      return new ReadableStream({
        start(controller) {
          if (end > start) controller.enqueue(bytes.slice(start, end));
          controller.close();
        },
      });
    },
    [Symbol.dispose]() {},
  };
}
