import { Failure, messageOf, reasonOf } from "../../../base/failure.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { hashOfBaseName, isStorePathHash, STORE_DIR, type StorePathHash } from "../../../nix/store_path.ts";
import { readForeignText } from "../foreign_file.ts";
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

const SUFFIX = ".narinfo";

/** A folder that is a binary cache, such as `nix copy --to file:///DIR` writes. */
export class FolderReader implements CacheReader {
  readonly #folder: string;
  readonly #nowMs: () => number;

  constructor(folder: string, nowMs: () => number) {
    this.#folder = folder;
    this.#nowMs = nowMs;
  }

  /** The store path hashes of all narinfos. Throws a Failure for an unreadable folder. */
  list(): readonly StorePathHash[] {
    try {
      return [...Deno.readDirSync(this.#folder)].filter(({ name }) => name.endsWith(SUFFIX))
        .map(({ name }) => name.slice(0, -SUFFIX.length)).filter(isStorePathHash).sort();
    } catch (error) {
      throw new Failure("broken", `Cannot import ${this.#folder}: ${reasonOf(error)}`, {}, error);
    }
  }

  async read(storePathHash: StorePathHash, signal: AbortSignal): Promise<SourceEntry> {
    const folder = this.#folder;
    const path = `${folder}/${storePathHash}${SUFFIX}`;
    const text = await readForeignText({ folder, path }, NARINFO_TEXT_MAX, signal);
    const narinfo = parseNarinfo(text);
    if (narinfo.storePathHash !== storePathHash) {
      throw new Failure("corrupt", `Cannot use ${path}: it describes ${narinfo.storePath}`);
    }
    const nar = { kind: "file", folder, path: this.#pathOf(narinfo.url) } as const;
    return { narinfo, usedAtMs: this.#nowMs(), nar };
  }

  [Symbol.dispose](): void {
    // It holds nothing open.
  }

  /** A narinfo must not name a file outside. */
  #pathOf(url: string): string {
    const [relative = ""] = url.split("?");
    const segments = relative.split("/");
    if (segments.every((segment) => segment !== "" && segment !== "." && segment !== "..")) {
      return `${this.#folder}/${relative}`;
    }
    throw new Failure("corrupt", "Cannot use narinfo: its URL leaves the cache");
  }
}
