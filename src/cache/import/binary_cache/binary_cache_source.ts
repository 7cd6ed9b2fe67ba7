import { Failure, messageOf } from "../../../base/failure.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import { hashOfBaseName, STORE_DIR, type StorePathHash } from "../../../nix/store_path.ts";
import type { BrokenEntry, ImportSource, SourceEntry } from "../import_source.ts";

/** A binary cache of any kind. */
export interface CacheReader {
  /** Rejects with a Failure where the narinfo is missing, unreadable or wrong. */
  read(storePathHash: StorePathHash, signal: AbortSignal): Promise<SourceEntry>;
  [Symbol.dispose](): void;
}

/** The paths that come over. */
export interface WantedPaths {
  readonly roots: readonly StorePathHash[];
  /** True: the closures of the roots come too. */
  readonly hasClosures: boolean;
}

/** The largest closure; larger ones are a mistake. */
const PATHS_MAX = 500_000;

/** Paths of a binary cache, with or without their closures. */
export class BinaryCacheSource implements ImportSource {
  readonly #reader: CacheReader;
  readonly #wanted: WantedPaths;

  constructor(reader: CacheReader, wanted: WantedPaths) {
    this.#reader = reader;
    this.#wanted = wanted;
  }

  get entryCount(): number | undefined {
    return this.#wanted.hasClosures ? undefined : this.#wanted.roots.length;
  }

  async *entries(signal: AbortSignal): AsyncGenerator<SourceEntry | BrokenEntry> {
    const { roots, hasClosures } = this.#wanted;
    // The loop also visits names that it adds on the way.
    const names = new Map<StorePathHash, string>(roots.map((root) => [root, root]));
    for (const [storePathHash, name] of names) {
      if (signal.aborted) return;
      let entry: SourceEntry;
      try {
        entry = await this.#reader.read(storePathHash, signal);
      } catch (error) {
        yield { name, problem: messageOf(error) };
        continue;
      }
      for (const reference of hasClosures ? entry.narinfo.references : []) {
        const hash = hashOfBaseName(reference);
        if (!names.has(hash)) names.set(hash, `${STORE_DIR}/${reference}`);
      }
      if (names.size > PATHS_MAX) {
        throw new Failure("broken", `Cannot import over ${PATHS_MAX} paths`);
      }
      yield entry;
    }
  }

  pins(): readonly PinRoot[] {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reader[Symbol.dispose]();
  }
}
