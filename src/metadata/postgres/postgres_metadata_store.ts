import type { Bytes } from "../../base/bytes.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { StorageId } from "../../base/storage_id.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { DocumentPath } from "../../nix/document_name.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Changed, ChangeFeed } from "../change_feed.ts";
import type { CopyMarks } from "../copy_marks.ts";
import { type ColdColumns, positionsAfter, readColdEntry } from "../cold_entries.ts";
import { type GraphColumns, type GraphRow, readBodies, readGraphRow } from "../graph_finder.ts";
import type { DatabaseSize } from "../database_size.ts";
import type { DocumentRow } from "../document_keeper.ts";
import type { PinNote } from "../pin_look.ts";
import { type ExpiredSlots, FIGURES, type HistoryRow } from "../history_keeper.ts";
import type { KeyKeeper } from "../key_keeper.ts";
import type { MemberBoard } from "../member_board.ts";
import {
  type Change,
  type DamageFinder,
  type KeptNar,
  type MetadataStore,
  type NamedPin,
  type NarinfoRow,
  type NarRecord,
  type NarSource,
  NEWEST_USE,
  type PathTimes,
  type PinRoot,
  type UsedNar,
  type WriteOptions,
} from "../metadata_store.ts";
import { type Migration, readMigrations } from "../migrations.ts";
import {
  type DocumentColumns,
  type KeptColumns,
  type NarColumns,
  type NarinfoColumns,
  type PathTimesColumns,
  type PinColumns,
  readDocument,
  readKeptNar,
  readNarinfoRow,
  readNarRecord,
  readPathTimes,
  readPin,
  readSignedPath,
  readSource,
  readStock,
  readUsedNar,
  type SignedPathColumns,
  type StockColumns,
  type UsedNarColumns,
} from "../rows.ts";
import type { NamedPath } from "../name_finder.ts";
import { type PullRow, PULLS_MAX, type PullSummary } from "../pull_keeper.ts";
import type {
  ListedDocument,
  ListedLooseNar,
  ListedNarinfo,
  ListedSignedPath,
  RowLister,
} from "../row_lister.ts";
import type { RowSweepOrder, SweptRows } from "../row_sweeper.ts";
import type { SignedPath, SignedPathCounts } from "../signed_path_keeper.ts";
import {
  type ColdEntry,
  EMPTIES_SHARE,
  type Evicted,
  EVICTED_PATHS_MAX,
  type EvictionOrder,
  type ExpiryOrder,
  type PendingFile,
  type Stock,
} from "../space_keeper.ts";
import type { HeartbeatOrder, Member, ReserveOrder } from "../space_ledger.ts";
import type { StorageIdKeeper } from "../storage_id_keeper.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { encodeTouches } from "./encoded_changes.ts";
import { migrate, requireSchema } from "./migrate.ts";
import { PostgresMemberBoard } from "./postgres_member_board.ts";
import { PostgresKeyKeeper } from "./postgres_key_keeper.ts";
import { NoticeFeed } from "./notice_feed.ts";
import { type QueryName, queryOf } from "./queries.ts";
import { filesOf, readEvicted, readSweptRows, sweepArgument } from "./swept_rows.ts";
import { Writer } from "./writer.ts";

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
export class PostgresMetadataStore
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

  async findNarinfo(storePathHash: StorePathHash): Promise<NarinfoRow | undefined> {
    const [row] = await this.#read<NarinfoColumns>("findNarinfo", storePathHash);
    return row && readNarinfoRow(storePathHash, row);
  }

  async findNar(narName: NarName): Promise<NarRecord | undefined> {
    const [row] = await this.#read<NarColumns>("findNar", narName);
    return row && readNarRecord(row);
  }

  async keptNars(prefix: string): Promise<readonly KeptNar[]> {
    const rows = await this.#read<KeptColumns & { readonly name: string }>("keptNars", prefix);
    return rows.flatMap(readKeptNar);
  }

  async usedNars(countMax: number, after = NEWEST_USE): Promise<readonly UsedNar[]> {
    const rows = await this.#read<UsedNarColumns>(
      "usedNars",
      ...[after.usedAtMs, after.id, countMax],
    );
    return rows.map(readUsedNar);
  }

  async sourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    return (await this.#read<NarSource>("sourcesOf", narName)).map(readSource);
  }

  narinfosOf(narName: NarName): Promise<readonly StorePathHash[]> {
    return this.#hashes("narinfosOf", narName);
  }

  referencesOf(storePathHash: StorePathHash): Promise<readonly StorePathHash[]> {
    return this.#hashes("referencesOf", storePathHash);
  }

  async pathTimes(storePathHash: StorePathHash): Promise<PathTimes> {
    const [row] = await this.#read<PathTimesColumns>("pathTimes", storePathHash);
    return row === undefined ? {} : readPathTimes(row);
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

  async findSigned(storePathHash: StorePathHash): Promise<SignedPath | undefined> {
    const [row] = await this.#read<SignedPathColumns>("findSigned", storePathHash);
    return row && readSignedPath(row);
  }

  async signedCounts(): Promise<SignedPathCounts> {
    const [row] = await this.#read<SignedPathCounts>("signedCounts");
    if (row === undefined) throw new Failure("broken", "Cannot count signed paths: no row");
    return row;
  }

  async findPin(storePathHash: StorePathHash): Promise<PinRoot | undefined> {
    const [row] = await this.#read<PinColumns>("findPin", storePathHash);
    return row && readPin(row);
  }

  async pins(): Promise<readonly PinRoot[]> {
    return (await this.#read<PinColumns>("pins")).map(readPin);
  }

  namedPins(): Promise<readonly NamedPin[]> {
    return this.#read<NamedPin>("namedPins");
  }

  async notePin(storePathHash: StorePathHash, { keepComplete, look }: PinNote): Promise<void> {
    const text = look === undefined ? null : JSON.stringify(look);
    await this.#read("notePin", storePathHash, keepComplete ?? null, text);
  }

  async findDocument(path: DocumentPath): Promise<DocumentRow | undefined> {
    const [row] = await this.#read<DocumentColumns>("findDocument", path);
    return row && readDocument(row);
  }

  async documentPiece(id: number, number: number): Promise<Bytes | undefined> {
    const [row] = await this.#read<{ bytes: Uint8Array }>("documentPiece", id, number);
    return row && new Uint8Array(row.bytes);
  }

  async documentBytes(): Promise<number> {
    const [row] = await this.#read<{ bytes: number }>("documentBytes");
    return row?.bytes ?? 0;
  }

  async debuginfoSourcesOf(narName: NarName): Promise<readonly NarSource[]> {
    const rows = await this.#read<{ upstream: string }>("debuginfoSourcesOf", narName);
    return rows.map(({ upstream }) => ({ upstream, location: `nar/${narName}` }));
  }

  async recordHistory(
    rows: readonly HistoryRow[],
    expired: readonly ExpiredSlots[],
  ): Promise<void> {
    const merged = rows.map((row) => ({ ...row, merge: FIGURES[row.figure] }));
    await this.#writer.run("record_history", { rows: merged, expired });
  }

  history(): Promise<readonly HistoryRow[]> {
    return this.#read<HistoryRow>("history");
  }

  async recordPulls(rows: readonly PullRow[]): Promise<void> {
    await this.#read("recordPulls", JSON.stringify(rows), PULLS_MAX);
  }

  pulls(countMax: number, client?: string): Promise<readonly PullSummary[]> {
    return this.#read<PullSummary>("pulls", client ?? null, countMax);
  }

  async findPull(id: string): Promise<PullRow | undefined> {
    return (await this.#read<PullRow>("findPull", id))[0];
  }

  async apply(changes: readonly Change[], { mustWait = false }: WriteOptions = {}): Promise<void> {
    if (changes.length === 0) return;
    const touches = encodeTouches(changes);
    if (touches !== undefined) await this.#writer.run("touch", touches);
    else await this.#writer.apply(changes, mustWait);
  }

  async stock(except: MemberId = ""): Promise<Stock> {
    const [row] = await this.#read<StockColumns>("stock", except);
    if (row === undefined) throw new Failure("broken", "Cannot read the stock: no row");
    return readStock(row);
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

  async storageId(): Promise<StorageId | undefined> {
    const [row] = await this.#read<{ id: StorageId }>("storageId");
    return row?.id;
  }

  async claimStorageId(id: StorageId): Promise<StorageId> {
    await this.#read("claimStorageId", id);
    return await this.storageId() ?? id;
  }

  async originalName(): Promise<string | undefined> {
    const [row] = await this.#read<{ original: string }>("originalName");
    return row?.original;
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

  listNarinfos(after: string, countMax: number): Promise<readonly ListedNarinfo[]> {
    return this.#read("listNarinfos", after, countMax);
  }

  listLooseNars(after: string, countMax: number): Promise<readonly ListedLooseNar[]> {
    return this.#read("listLooseNars", after, countMax);
  }

  listSignedPaths(after: string, countMax: number): Promise<readonly ListedSignedPath[]> {
    return this.#read("listSignedPaths", after, countMax);
  }

  listDocuments(after: string, countMax: number): Promise<readonly ListedDocument[]> {
    return this.#read("listDocuments", after, countMax);
  }

  async areSumsRight(): Promise<boolean> {
    return (await this.#read("wrongSums")).length === 0;
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

  async pendingFiles(): Promise<readonly PendingFile[]> {
    return filesOf(await this.#read("pendingFiles"));
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

  async #read<Columns>(name: QueryName, ...values: readonly unknown[]) {
    try {
      return await this.#database.query(queryOf(name, values)) as unknown as readonly Columns[];
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw new Failure("broken", `Cannot read metadata: ${messageOf(error)}`, {}, error);
    }
  }

  async #hashes(name: QueryName, narName: string): Promise<readonly StorePathHash[]> {
    return (await this.#read<{ hash: StorePathHash }>(name, narName)).map(({ hash }) => hash);
  }
}
