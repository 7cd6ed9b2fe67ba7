import { SizeLimit } from "../../src/space/size_limit.ts";
import type { EvictionRunsDeps } from "../../src/space/eviction_runs.ts";
import { ActiveReads } from "../../src/space/active_reads.ts";
import { assembleSpace } from "../../src/space/assemble_space.ts";
import type { Space } from "../../src/space/space.ts";
import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { NarName } from "../../src/nix/nar_name.ts";
import { narNameOf, type StoredName } from "../../src/nix/stored_name.ts";
import type { StorePathHash } from "../../src/nix/store_path.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { fileOf, hash, keep, narOf, put } from "./metadata_rows.ts";

/** A space over real metadata, whose files are names in a set. */
export class StockedSpace implements AsyncDisposable {
  readonly space: Space;
  readonly metadata: SqliteMetadataStore;
  readonly files = new Set<StoredName>();
  readonly reads = new ActiveReads();
  readonly log: { readonly level: string; readonly msg: string }[] = [];
  /** Set to have removals fail. */
  broken: boolean | Error = false;
  /** Set to have the store known to answer nothing. */
  silent = false;
  #nowMs = 1_000_000;

  private constructor(
    metadata: SqliteMetadataStore,
    limit: SizeLimit,
    observe: EvictionRunsDeps["observe"],
    graceMs: number,
  ) {
    this.metadata = metadata;
    const users = { reads: this.reads, flushTouches: () => Promise.resolve() };
    const isSilent = () => this.silent;
    this.space = assembleSpace({ limit, owner: "test", graceMs }, users, {
      metadata,
      nars: {
        get isSilent() {
          return isSilent();
        },
        remove: async (at) => {
          if (this.broken !== false) throw this.broken === true ? new Error("held") : this.broken;
          return this.files.delete(at);
        },
      },
      nowMs: () => this.#nowMs,
      log: createLogger("debug", { write: (line) => void this.log.push(JSON.parse(line)) }),
      observe,
    });
  }

  static async open(
    limit: number | SizeLimit,
    observe: EvictionRunsDeps["observe"] = () => undefined,
    graceMs = 0,
  ): Promise<StockedSpace> {
    const metadata = new SqliteMetadataStore(await openDatabase(":memory:"));
    const given = typeof limit === "number" ? SizeLimit.of(limit) : limit;
    return new StockedSpace(metadata, given, observe, graceMs);
  }

  /** Stores a path with a NAR file of its own; each call is a later use. */
  async store(seed: string, fileSize: number, references: readonly string[] = []) {
    const path = hash(seed);
    const atMs = this.#nowMs++;
    const narName = narOf(path).name;
    const file = fileOf(narName, fileSize);
    await this.metadata.apply([put(path, references.map(hash), atMs), ...keep(file, atMs)]);
    this.files.add(file.at);
    await this.space.open();
    return narName;
  }

  async pin(seed: string): Promise<void> {
    const pin = { storePathHash: hash(seed), pinnedAtMs: this.#nowMs };
    await this.metadata.apply([{ kind: "put-pin", pin }]);
    await this.space.altered();
  }

  async unpin(seed: string): Promise<void> {
    await this.metadata.apply([{ kind: "remove-pin", storePathHash: hash(seed) }]);
    await this.space.altered();
  }

  /** Resolves when the eviction runs so far are over. */
  async runsOver(): Promise<void> {
    const watcher = { progress: () => undefined, isWanted: () => true };
    await this.space.collect({ targetBytes: Number.MAX_SAFE_INTEGER, dryRun: true }, watcher);
  }

  /** Has the clock go on. */
  elapse(ms: number): void {
    this.#nowMs += ms;
  }

  /** Those of the seeds whose narinfo and file are stored. */
  async stored(seeds: readonly string[]): Promise<readonly string[]> {
    const paths: readonly (readonly [string, StorePathHash])[] = seeds.map((seed) => [
      seed,
      hash(seed),
    ]);
    const rows = await Promise.all(paths.map(([, path]) => this.metadata.findNarinfo(path)));
    return paths.filter(([, path], index) =>
      rows[index] !== undefined && this.#isPresent(narOf(path).name)
    ).map(([seed]) => seed);
  }

  /** Messages of a level. */
  logged(level: string): readonly string[] {
    return this.log.filter((line) => line.level === level).map(({ msg }) => msg);
  }

  #isPresent(narName: NarName): boolean {
    return [...this.files].some((at) => narNameOf(at) === narName);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.space[Symbol.asyncDispose]();
    await this.metadata[Symbol.asyncDispose]();
  }
}
