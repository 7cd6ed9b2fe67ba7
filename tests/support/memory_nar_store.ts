import type { NarName } from "../../src/nix/nar_name.ts";
import { Failure } from "../../src/base/failure.ts";
import type { NarStore, StoredNar } from "../../src/storage/nar_store.ts";

/** The NAR store's contract in a map, for tests above the port. */
export class MemoryNarStore implements NarStore, AsyncDisposable {
  readonly #files = new Map<NarName, Uint8Array<ArrayBuffer>>();

  async open(name: NarName): Promise<StoredNar | undefined> {
    const bytes = this.#files.get(name);
    return bytes === undefined ? undefined : storedNar(bytes);
  }

  async publish(name: NarName, path: string): Promise<void> {
    this.#files.set(name, await Deno.readFile(path));
    await Deno.remove(path);
  }

  async remove(name: NarName): Promise<boolean> {
    return this.#files.delete(name);
  }

  async *list(): AsyncIterable<{ name: NarName; fileSize: number }> {
    for (const [name, bytes] of this.#files) yield { name, fileSize: bytes.length };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#files.clear();
  }
}

function storedNar(bytes: Uint8Array<ArrayBuffer>): StoredNar {
  return {
    fileSize: bytes.length,
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
