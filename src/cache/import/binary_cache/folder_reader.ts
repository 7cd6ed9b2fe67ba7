import { Failure, reasonOf } from "../../../base/failure.ts";
import { readForeignText } from "../foreign_file.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import { isStorePathHash, type StorePathHash } from "../../../nix/store_path.ts";
import type { SourceEntry } from "../import_source.ts";
import type { CacheReader } from "./binary_cache_source.ts";

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
