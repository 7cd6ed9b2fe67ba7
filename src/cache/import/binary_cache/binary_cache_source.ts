import type { Bytes } from "../../../base/bytes.ts";
import { Failure, messageOf, reasonOf } from "../../../base/failure.ts";
import { streamOf } from "../../../base/stream_of.ts";
import type { PinRoot } from "../../../metadata/metadata_store.ts";
import { FORMER_NAMES_SUFFIX, FORMER_NAMES_TEXT_MAX } from "../../../nix/former_names.ts";
import { hashOf } from "../../../nix/nar_name.ts";
import type { Narinfo } from "../../../nix/narinfo.ts";
import { NARINFO_TEXT_MAX, parseNarinfo } from "../../../nix/narinfo_parse.ts";
import {
  hashOfBaseName,
  isStorePathHash,
  STORE_DIR,
  type StorePathHash,
} from "../../../nix/store_path.ts";
import { clock } from "../../../runtime/current.ts";
import type { NarBodySource, NarinfoSource } from "../../../upstream/upstream.ts";
import { nameInUrl } from "../../nar/nar_naming.ts";
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
    const formerNames = await this.#formerNames(storePathHash, signal);
    return { narinfo, usedAtMs: this.#nowMs(), nar, formerNames };
  }

  async #formerNames(
    storePathHash: StorePathHash,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const folder = this.#folder;
    const path = `${folder}/${storePathHash}${FORMER_NAMES_SUFFIX}`;
    try {
      return await readForeignText({ folder, path }, FORMER_NAMES_TEXT_MAX, signal);
    } catch (error) {
      if (error instanceof Failure && error.cause instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
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

interface UpstreamReaderDeps {
  readonly narinfos: Pick<NarinfoSource, "narinfo">;
  readonly nars: Pick<NarBodySource, "openNar">;
  /** The longest pause within a NAR file. */
  readonly idleTimeoutMs: number;
  readonly nowMs: () => number;
  /** Closes the connections. */
  readonly close: () => void;
}

/**
 * A binary cache that larder reaches as it reaches an upstream. An import has one source for a NAR,
 * and lists a NAR that breaks off, so it needs none of a download's attempts.
 */
export class UpstreamReader implements CacheReader {
  readonly #deps: UpstreamReaderDeps;

  constructor(deps: UpstreamReaderDeps) {
    this.#deps = deps;
  }

  async read(storePathHash: StorePathHash, signal: AbortSignal): Promise<SourceEntry> {
    const { narinfos, nowMs } = this.#deps;
    const reading = await narinfos.narinfo(storePathHash, signal);
    if (reading.kind === "absent") throw new Failure("absent", "the cache does not have it");
    if (reading.kind === "failed") throw new Failure("upstream-down", reading.detail);
    const { narinfo } = reading;
    const fileSize = narinfo.fileSize;
    const open = (signal: AbortSignal) => this.#open(narinfo.url, signal);
    const formerNames = await this.#formerNames(narinfo, signal);
    return { narinfo, usedAtMs: nowMs(), nar: { kind: "stream", fileSize, open }, formerNames };
  }

  [Symbol.dispose](): void {
    this.#deps.close();
  }

  /** Only an export of larder has them: there the name of a NAR need not be its file hash. */
  async #formerNames(
    { url, fileHash, storePathHash }: Narinfo,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const name = nameInUrl(url);
    if (name === undefined || hashOf(name) === `${fileHash}`) return undefined;
    const path = `${storePathHash}${FORMER_NAMES_SUFFIX}`;
    // A cache may refuse what it does not have.
    const found = await this.#deps.nars.openNar(path, { offset: 0, signal }).catch(() => undefined);
    if (found === undefined) return undefined;
    let text = "";
    for await (const piece of steady(found.body, this.#deps.idleTimeoutMs)) {
      text += new TextDecoder().decode(piece);
      if (text.length > FORMER_NAMES_TEXT_MAX) return undefined;
    }
    return text;
  }

  async #open(url: string, signal: AbortSignal) {
    const { nars, idleTimeoutMs } = this.#deps;
    const found = await nars.openNar(url, { offset: 0, signal });
    if (found === undefined) throw new Failure("absent", "the cache does not have its NAR");
    return streamOf(steady(found.body, idleTimeoutMs));
  }
}

/** The pieces of a body. Throws a Failure for a pause that is too long. */
async function* steady(
  body: ReadableStream<Uint8Array>,
  idleTimeoutMs: number,
): AsyncGenerator<Bytes> {
  const reader = body.getReader();
  try {
    for (;;) {
      const read = await clock.within(reader.read(), idleTimeoutMs);
      if (read === undefined) throw new Failure("upstream-down", "its NAR stalled");
      if (read.done) return;
      yield new Uint8Array(read.value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
