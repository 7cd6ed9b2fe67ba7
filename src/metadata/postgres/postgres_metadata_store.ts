import type { Bytes } from "../../base/bytes.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { StorageId } from "../../base/storage_id.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { clock } from "../../runtime/current.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Changed, ChangeFeed } from "../change_feed.ts";
import type { CopyMarks } from "../copy_marks.ts";
import { type ColdColumns, positionsAfter, readColdEntry } from "../cold_entries.ts";
import { type GraphColumns, type GraphRow, readBodies, readGraphRow } from "../graph_finder.ts";
import type { DatabaseSize } from "../database_size.ts";
import type { PinNote } from "../pin_look.ts";
import { type ExpiredSlots, FIGURES, type HistoryRow } from "../history_keeper.ts";
import type { KeyKeeper } from "../key_keeper.ts";
import type { MemberBoard } from "../member_board.ts";
import type { Change, DamageFinder, MetadataStore, WriteOptions } from "../metadata_store.ts";
import { type Migration, readMigrations } from "../migrations.ts";
import type { NamedPath } from "../name_finder.ts";
import { type PullRow, PULLS_MAX } from "../pull_keeper.ts";
import type { RowLister } from "../row_lister.ts";
import { NAR_GRACE_MS, PATHS_PER_ROW, type RowSweepOrder, type SweptRows } from "../row_sweeper.ts";
import {
  type ColdEntry,
  EMPTIES_SHARE,
  type Evicted,
  EVICTED_PATHS_MAX,
  type EvictionOrder,
  type ExpiryOrder,
  type PendingFile,
} from "../space_keeper.ts";
import type { HeartbeatOrder, Member, ReserveOrder } from "../space_ledger.ts";
import type { StorageIdKeeper } from "../storage_id_keeper.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { encodeTouches } from "./encoded_changes.ts";
import { migrate, requireSchema } from "./migrate.ts";
import { PostgresMemberBoard } from "./postgres_member_board.ts";
import { PostgresKeyKeeper } from "./postgres_key_keeper.ts";
import { type ReadName, StoredRows } from "../stored_rows.ts";
import { NoticeFeed } from "./notice_feed.ts";
import { type QueryName, queryOf } from "./queries.ts";
import { type WriteOutcome, Writer } from "./writer.ts";
import type { NarName, NarStem } from "../../nix/nar_name.ts";
import { type PendingFileColumns, readPendingFile } from "../rows.ts";

export interface PostgresOptions extends DatabaseOptions {
  /** Clock of the members' heartbeats; default: the server's clock. */
  readonly nowMs?: () => number;
  readonly migrations?: readonly Migration[];
  /** False: throws a Failure unless the database has the newest schema. Default: true. */
  readonly migrates?: boolean;
}

/** Narinfos of one query: an abandoned search ends after it. */
const NAMES_AT_ONCE = 20_000;

/** The server looks at all of its files for the size. */
const SIZE_EVERY_MS = 10_000;

/** The metadata in a PostgreSQL database, which several larders may share. */
export class PostgresMetadataStore extends StoredRows
  implements MetadataStore, DamageFinder, RowLister, ChangeFeed, StorageIdKeeper, CopyMarks {
  readonly #database: Database;
  readonly #writer: Writer;
  readonly #feed: NoticeFeed;
  readonly #nowMs: () => number | null;
  #size: DatabaseSize = { bytes: 0, countedBytes: 0 };
  #sizedAtMs = -Infinity;
  readonly keys: KeyKeeper;
  readonly board: MemberBoard;

  private constructor(
    parts: { readonly database: Database; readonly writer: Writer; readonly feed: NoticeFeed },
    nowMs: () => number | null,
  ) {
    super();
    this.#database = parts.database;
    this.#writer = parts.writer;
    this.#feed = parts.feed;
    this.#nowMs = nowMs;
    this.keys = new PostgresKeyKeeper(parts.database);
    this.board = new PostgresMemberBoard(parts.database, nowMs);
  }

  /** Connects, and migrates the database to the newest schema. */
  static async open(options: PostgresOptions): Promise<PostgresMetadataStore> {
    const { nowMs = () => null, migrations = readMigrations("postgres") } = options;
    await using opening = new AsyncDisposableStack();
    const database = opening.use(new Database(options));
    const client = await database.connected();
    try {
      if (options.migrates ?? true) await migrate(client, migrations, options.log);
      else await requireSchema(client, migrations);
    } finally {
      await client.end();
    }
    const writer = opening.use(new Writer(database));
    const connect = () => database.connect();
    const feed = opening.use(await NoticeFeed.open({ connect, writerId: writer.id }));
    opening.move();
    return new PostgresMetadataStore({ database, writer, feed }, nowMs);
  }

  async graphRows(
    storePathHashes: readonly StorePathHash[],
    signal?: AbortSignal,
  ): Promise<readonly GraphRow[]> {
    signal?.throwIfAborted();
    return (await this.#read<GraphColumns>("graphRows", storePathHashes)).map(readGraphRow);
  }

  async narinfoBodies(storePathHashes: readonly StorePathHash[], signal?: AbortSignal) {
    signal?.throwIfAborted();
    return readBodies(await this.#read("narinfoBodies", storePathHashes));
  }

  async findNamed(
    text: string,
    countMax: number,
    signal?: AbortSignal,
  ): Promise<readonly NamedPath[]> {
    signal?.throwIfAborted();
    const found: NamedPath[] = [];
    const [row] = await this.#read<{ readonly id: number | null }>("lastNarinfo");
    for (let last = Number(row?.id ?? 0); last > 0 && found.length < countMax;) {
      signal?.throwIfAborted();
      const first = last - NAMES_AT_ONCE;
      const left = countMax - found.length;
      found.push(...await this.#read<NamedPath>("findNamed", text, left, first, last));
      last = first;
    }
    return found;
  }

  async notePin(storePathHash: StorePathHash, { keepComplete, look }: PinNote): Promise<void> {
    const text = look === undefined ? null : JSON.stringify(look);
    await this.#read("notePin", storePathHash, keepComplete ?? null, text);
  }

  async putFormerNames(narName: NarName, stems: readonly NarStem[]): Promise<void> {
    await this.#read("putFormerNames", narName, stems);
  }

  async documentPiece(id: number, number: number): Promise<Bytes | undefined> {
    const [row] = await this.#read<{ bytes: Uint8Array }>("documentPiece", id, number);
    return row && new Uint8Array(row.bytes);
  }

  async recordHistory(
    rows: readonly HistoryRow[],
    expired: readonly ExpiredSlots[],
  ): Promise<void> {
    const merged = rows.map((row) => ({ ...row, merge: FIGURES[row.figure] }));
    await this.#writer.run("record_history", { rows: merged, expired });
  }

  async recordPulls(rows: readonly PullRow[]): Promise<void> {
    await this.#read("recordPulls", JSON.stringify(rows), PULLS_MAX);
  }

  async apply(changes: readonly Change[], { mustWait = false }: WriteOptions = {}): Promise<void> {
    if (changes.length === 0) return;
    const touches = encodeTouches(changes);
    if (touches !== undefined) await this.#writer.run("touch", touches);
    else await this.#writer.apply(changes, mustWait);
  }

  /** Its bytes take no room from the NAR files: they are on the server's disk. */
  async databaseSize(): Promise<DatabaseSize> {
    const nowMs = clock.nowMs();
    if (nowMs >= this.#sizedAtMs + SIZE_EVERY_MS) {
      this.#sizedAtMs = nowMs;
      const [row] = await this.#read<{ bytes: number }>("databaseSize");
      this.#size = { bytes: row?.bytes ?? 0, countedBytes: 0 };
    }
    return this.#size;
  }

  async reserve(member: MemberId, order: ReserveOrder): Promise<number | undefined> {
    const { limitBytes, neededBytes, wantedBytes } = order;
    const values = [member, limitBytes, neededBytes, wantedBytes];
    const [row] = await this.#read<{ reserved_bytes: number | null }>("reserve", ...values);
    return row?.reserved_bytes ?? undefined;
  }

  async beat(member: MemberId, order: HeartbeatOrder): Promise<number> {
    const { reservedBytes, limitBytes, url } = order;
    const values = [member, limitBytes, reservedBytes, this.#nowMs(), url ?? null];
    const [row] = await this.#read<{ reserved_bytes: number }>("beat", ...values);
    return row?.reserved_bytes ?? 0;
  }

  async members(observer: MemberId): Promise<readonly Member[]> {
    type Columns = {
      readonly id: string;
      readonly silent_ms: number;
      readonly url: string | null;
    };
    const rows = await this.#read<Columns>("members", observer, this.#nowMs());
    return rows.map(({ id, silent_ms, url }) => (
      { id, silentMs: silent_ms, ...(url === null ? {} : { url }) }
    ));
  }

  async leave(member: MemberId): Promise<void> {
    await this.#read("leave", member);
  }

  async claimStorageId(id: StorageId): Promise<StorageId> {
    await this.#read("claimStorageId", id);
    return await this.storageId() ?? id;
  }

  async markCopy(original: string | undefined): Promise<void> {
    await (original === undefined ? this.#read("unmarkCopy") : this.#read("markCopy", original));
  }

  async coldest(countMax: number, after?: string): Promise<readonly ColdEntry[]> {
    const { narinfos, looseNars } = positionsAfter(after);
    const rows = await this.#read<ColdColumns>(
      "coldest",
      ...[countMax, narinfos.usedAtMs, narinfos.id, looseNars.usedAtMs, looseNars.id],
    );
    return rows.map(readColdEntry);
  }

  async evict(order: EvictionOrder): Promise<Evicted> {
    const { spared, entriesMax } = order;
    const emptiesMax = Math.ceil(entriesMax * EMPTIES_SHARE);
    return readEvicted(
      await this.#writer.run("evict", {
        ...{ ...order, spared: [...spared], emptiesMax, evictedPathsMax: EVICTED_PATHS_MAX },
      }),
    );
  }

  async protect(pathsMax: number): Promise<boolean> {
    return (await this.#writer.run("protect", { pathsMax }))["more"] === true;
  }

  async sweepRows(order: RowSweepOrder): Promise<SweptRows> {
    const outcome = await this.#writer.run("sweep_rows", sweepArgument(order));
    return readSweptRows(outcome, order.after);
  }

  async recount(): Promise<boolean> {
    return (await this.#writer.run("recount"))["right"] === true;
  }

  /** None: the server checks its own pages. */
  damage(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  async expireNars(order: ExpiryOrder): Promise<readonly PendingFile[]> {
    if ((await this.#read("expired", order.atMs)).length === 0) return [];
    const outcome = await this.#writer.run("expire", { ...order, spared: [...order.spared] });
    return filesOf(outcome["files"]);
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    return this.#feed.subscribe(on);
  }

  /** Resolves when all notices of earlier changes have arrived. */
  reported(): Promise<void> {
    return this.#feed.check();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#feed[Symbol.asyncDispose]();
    await this.#writer[Symbol.asyncDispose]();
    await this.#database[Symbol.asyncDispose]();
  }

  protected override rows<Row>(
    name: ReadName,
    ...values: readonly unknown[]
  ): Promise<readonly Row[]> {
    return this.#read<Row>(name, ...values);
  }

  async #read<Columns>(name: QueryName, ...values: readonly unknown[]) {
    try {
      return await this.#database.query(queryOf(name, values)) as unknown as readonly Columns[];
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw new Failure("broken", `Cannot read metadata: ${messageOf(error)}`, {}, error);
    }
  }
}

/** The argument of `sweep_rows`. */
function sweepArgument({ unusedSinceMs, rowsMax, spared, after = "" }: RowSweepOrder) {
  return {
    ...{ unusedSinceMs, rowsMax, spared: [...spared], graceMs: NAR_GRACE_MS },
    ...(after === "" ? {} : { afterId: Number(after), pathsMax: rowsMax * PATHS_PER_ROW }),
  };
}

/** The outcome of `sweep_rows`, which began after the row `after`. */
function readSweptRows(outcome: WriteOutcome, after = ""): SweptRows {
  const settled = outcome["settled"] === true;
  const { narinfos = [], nars = [], paths = 0, lastId } = outcome as Partial<{
    readonly narinfos: readonly StorePathHash[];
    readonly nars: readonly NarName[];
    readonly paths: number;
    readonly lastId: number | null;
  }>;
  const swept = { narinfos, nars, paths, settled };
  if (!settled) return { ...swept, next: after };
  if (after !== "") return lastId ? { ...swept, next: String(lastId) } : swept;
  return { ...swept, next: narinfos.length + nars.length > 0 ? "" : "0" };
}

/** The outcome of `evict`. */
function readEvicted(outcome: Readonly<Record<string, unknown>>): Evicted {
  return {
    narinfos: (outcome["narinfos"] ?? []) as readonly StorePathHash[],
    files: filesOf(outcome["files"]),
    entries: Number(outcome["entries"] ?? 0),
    settled: outcome["settled"] === true,
  };
}

/** The files of an outcome that has some. */
function filesOf(files: unknown): readonly PendingFile[] {
  return ((files ?? []) as readonly PendingFileColumns[]).map(readPendingFile);
}
