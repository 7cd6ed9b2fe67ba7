import { SizeLimit } from "../../../src/space/size_limit.ts";
import { Touches } from "../../../src/cache/touches.ts";
import { ActiveReads } from "../../../src/space/active_reads.ts";
import { assembleSpace } from "../../../src/space/assemble_space.ts";
import type { Space } from "../../../src/space/space.ts";
import type { Change } from "../../../src/metadata/metadata_store.ts";
import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";
import { SqliteMetadataStore } from "../../../src/metadata/sqlite/sqlite_metadata_store.ts";
import type { StorePathHash } from "../../../src/nix/store_path.ts";
import { LocalNarStore } from "../../../src/storage/local/local_nar_store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import {
  CLOSURE_PATHS,
  FILE_BYTES,
  foldersOf,
  type LargeCache,
  overlappingRoots,
} from "./large_cache.ts";
import { each, type Spent, watched } from "./turns.ts";

/** Largest number of touches in one batch. */
const USES = 10_000;

/** Number of eviction candidates. */
const CONSIDERED = 4_096;
const PAGE = 256;

/** Evicted entries of a round: three rounds must leave something of the small cache. */
const EVICTED = 1_500;

/** Figures of a round without eviction. */
export interface KeepingFigures {
  /** Of one use. */
  readonly use: Spent;
  readonly usesStop: Spent;
  readonly pin: Spent;
  readonly pinStop: Spent;
  readonly unpin: Spent;
  readonly unpinStop: Spent;
  /** Of one entry. */
  readonly considered: Spent;
}

/** Figures of a round with eviction. */
export interface EvictionFigures {
  /** Of one entry. */
  readonly evicted: Spent;
  readonly evictionStop: Spent;
}

/** The parts of larder behind the size limit, on a large cache. */
export class StockedCache implements AsyncDisposable {
  readonly #entries: number;
  readonly #metadata: SqliteMetadataStore;
  readonly #space: Space;
  readonly #uses: Touches;
  readonly #hashOf: (id: number) => StorePathHash;

  private constructor(
    { entries, folder }: LargeCache,
    database: Awaited<ReturnType<typeof openDatabase>>,
  ) {
    const hash = database.prepare("SELECT hash FROM path WHERE id = ?");
    this.#hashOf = (id) => hash.get(id)?.["hash"] as StorePathHash;
    this.#entries = entries;
    const metadata = this.#metadata = new SqliteMetadataStore(database);
    const log = createLogger("error", { write: (line) => console.error(line) });
    const nowMs = Date.now;
    this.#uses = new Touches({ metadata, nowMs, log });
    const nars = new LocalNarStore(foldersOf({ folder }).nars);
    const users = { reads: new ActiveReads(), flushTouches: () => Promise.resolve() };
    const around = { metadata, nars, nowMs, log, observe: () => undefined };
    this.#space = assembleSpace({ limit: SizeLimit.of(Infinity), owner: "bench" }, users, around);
  }

  static async open(cache: LargeCache): Promise<StockedCache> {
    return new StockedCache(cache, await openDatabase(foldersOf(cache).database));
  }

  /** The closures must be whole, so call it before any eviction. */
  async keep(): Promise<KeepingFigures> {
    const touches = await this.#use();
    const pin = await this.#pin();
    const unpin = await this.#unpinOneOfMany();
    const considered = await watched(() => this.#consider());
    return {
      use: each(touches.took, USES),
      usesStop: touches.stop,
      pin: pin.took,
      pinStop: pin.stop,
      unpin: unpin.took,
      unpinStop: unpin.stop,
      considered: each(considered.took, CONSIDERED),
    };
  }

  /** Adds its own pins, each with some of the small cache's few entries. */
  async evict(): Promise<EvictionFigures> {
    await this.#space.open();
    const { value, took, stop } = await watched(() => this.#evict());
    return { evicted: each(took, value), evictionStop: stop };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#uses[Symbol.asyncDispose]();
    await this.#space[Symbol.asyncDispose]();
    await this.#metadata[Symbol.asyncDispose]();
  }

  /** Touches random paths, as if all had the same load. */
  async #use() {
    const any = () => this.#hashOf(1 + Math.floor(Math.random() * this.#entries));
    for (let at = 0; at < USES; at++) this.#uses.narinfo(any());
    return await watched(() => this.#uses.flush());
  }

  /** Waits until every path of the closure is protected. */
  async #pin() {
    await this.#settled(
      overlappingRoots().map((id) => ({
        kind: "remove-pin",
        storePathHash: this.#hashOf(id),
      })),
    );
    const pinned = await watched(() => this.#settled([this.#pinOf(1)]));
    const { protectedBytes } = await this.#metadata.stock();
    if (protectedBytes !== CLOSURE_PATHS * FILE_BYTES) {
      throw new Error(`Cannot measure pins: ${protectedBytes / FILE_BYTES} paths are protected`);
    }
    await this.#settled([{ kind: "remove-pin", storePathHash: this.#hashOf(1) }]);
    return pinned;
  }

  /** Waits until the paths of that pin alone may go. */
  async #unpinOneOfMany() {
    const [first = 1, ...rest] = overlappingRoots();
    await this.#settled([first, ...rest].map((id) => this.#pinOf(id)));
    return await watched(() =>
      this.#settled([{ kind: "remove-pin", storePathHash: this.#hashOf(first) }])
    );
  }

  /** Reads the coldest unprotected entries. */
  async #consider(): Promise<void> {
    let after: string | undefined;
    for (let count = 0; count < CONSIDERED; count += PAGE) {
      after = (await this.#metadata.coldest(PAGE, after)).at(-1)?.cursor;
    }
  }

  async #evict(): Promise<number> {
    const targetBytes = this.#space.budget.usedBytes - EVICTED * FILE_BYTES;
    const done = await this.#space.collect({ targetBytes, dryRun: false }, {
      progress: () => undefined,
      isWanted: () => true,
    });
    if (done?.evictedEntries !== EVICTED) throw new Error(`Evicted ${done?.evictedEntries}`);
    return done.evictedEntries;
  }

  #pinOf(id: number): Change {
    return { kind: "put-pin", pin: { storePathHash: this.#hashOf(id), pinnedAtMs: 1 } };
  }

  async #settled(changes: readonly Change[]): Promise<void> {
    await this.#metadata.apply(changes);
    await this.#space.refresh();
  }
}
