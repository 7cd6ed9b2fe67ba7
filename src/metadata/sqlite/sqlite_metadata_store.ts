import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { StorageId } from "../../base/storage_id.ts";
import type { NarName, NarStem } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { type Changed, type ChangeFeed, Subscribers } from "../change_feed.ts";
import {
  type Change,
  closedFailure,
  type CopyMarks,
  type DamageFinder,
  type GraphColumns,
  type GraphRow,
  type MetadataStore,
  type NamedPath,
  type PinNote,
  readBodies,
  readGraphRow,
  type RowLister,
  type RowSweepOrder,
  type StorageIdKeeper,
  type SweptRows,
  type WriteOptions,
} from "../metadata_store.ts";
import type {
  ColdEntry,
  DatabaseSize,
  Evicted,
  EvictionOrder,
  ExpiryOrder,
  HeartbeatOrder,
  Member,
  PendingFile,
  ReserveOrder,
} from "../space_keeper.ts";
import {
  type ExpiredSlots,
  FIGURES,
  type HistoryRow,
  type PullRow,
  PULLS_MAX,
} from "../history_keeper.ts";
import {
  type MemberBoard,
  type MemberReport,
  readReports,
  REPORT_KEPT_MS,
  type ReportColumns,
  REPORTS_MAX,
} from "../member_board.ts";
import { type ReadName, StoredRows } from "../stored_rows.ts";
import { ChangeApplier, isTouch } from "./change_applier.ts";
import { Protection } from "./pins.ts";
import { ReferenceSlices } from "./reference_slices.ts";
import { Eviction, FIRST_PATH, sweepUnused } from "./space.ts";
import { prepareStatements, type Statements, STEP_IDS } from "./statements.ts";
import {
  isLocked,
  LOCKED_MAX_MS,
  LOCKED_RETRY_MS,
  resultCodeOf,
  SQLITE_CORRUPT,
  sqliteWriteFailure,
  Transactions,
  WriteQueue,
} from "./write_queue.ts";

/** How an amount gets into a slot that has one. */
const MERGES = { sum: "addFigure", last: "replaceFigure", first: "keepFigure" } as const;

/** The metadata in one SQLite file. Point reads run on the calling thread: microseconds each. */
export class SqliteMetadataStore extends StoredRows
  implements MetadataStore, DamageFinder, RowLister, ChangeFeed, StorageIdKeeper, CopyMarks {
  readonly #transactions: Transactions;
  readonly #statements: Statements;
  readonly #protection: Protection;
  readonly #eviction: Eviction;
  readonly #nowMs: () => number;
  readonly #queue: WriteQueue;
  readonly #references: ReferenceSlices;
  readonly #feed: DataVersionFeed;
  readonly board: MemberBoard;
  #closed = false;

  /** `nowMs`: of the members' heartbeats. `feed`: of this connection. */
  constructor(
    database: DatabaseSync,
    nowMs: () => number = () => clock.wallMs(),
    feed?: DataVersionFeed,
  ) {
    super();
    this.#statements = prepareStatements(database);
    this.#feed = feed ?? new DataVersionFeed({
      dataVersion: () => this.#read("dataVersion").get()?.["data_version"],
      revision: () => Number(this.#read("revision").get()?.["revision"]),
    });
    this.#transactions = new Transactions(database, this.#statements, () => this.#feed.raised());
    this.#protection = new Protection(this.#statements);
    const applier = new ChangeApplier(this.#statements, this.#protection, this.#transactions);
    this.#queue = new WriteQueue(applier);
    this.#references = new ReferenceSlices({
      statements: this.#statements,
      within: (work, mustWait) => this.#alone(work, mustWait ? Infinity : undefined),
      makeWay: (change) => applier.makeWay(change),
    });
    this.#eviction = new Eviction(this.#statements, this.#protection);
    this.#nowMs = nowMs;
    this.board = new SqliteMemberBoard({
      ...{ statements: this.#statements, nowMs },
      within: (work) => this.#withoutRevision(work),
    });
  }

  async graphRows(
    storePathHashes: readonly StorePathHash[],
    signal?: AbortSignal,
  ): Promise<readonly GraphRow[]> {
    return (await this.#each<GraphColumns>("graphRow", storePathHashes, signal)).map(readGraphRow);
  }

  async narinfoBodies(storePathHashes: readonly StorePathHash[], signal?: AbortSignal) {
    return readBodies(await this.#each("narinfoBody", storePathHashes, signal));
  }

  /** Searches in steps, from the newest id to the oldest, in time slices. */
  async findNamed(
    text: string,
    countMax: number,
    signal?: AbortSignal,
  ): Promise<readonly NamedPath[]> {
    const pattern = `%${text.replace(/[%_\\]/g, "\\$&")}%`;
    signal?.throwIfAborted();
    const slice = clock.slice(signal);
    const found: NamedPath[] = [];
    let lastId = Number(this.#read("lastNarinfo").get()?.["id"] ?? 0);
    for (; lastId > 0 && found.length < countMax; lastId -= STEP_IDS) {
      for (const { hash, name } of this.#read("named").all(lastId, pattern)) {
        found.push({ storePathHash: hash as StorePathHash, name: String(name) });
      }
      if (slice.isOver) await slice.yield();
    }
    return found.slice(0, countMax);
  }

  async notePin(storePathHash: StorePathHash, { keepComplete, look }: PinNote): Promise<void> {
    const keep = keepComplete === undefined ? null : Number(keepComplete);
    const text = look === undefined ? null : JSON.stringify(look);
    await this.#withoutRevision(() => this.#statements.notePin.run(keep, text, storePathHash));
  }

  async putFormerNames(narName: NarName, stems: readonly NarStem[]): Promise<void> {
    const { putFormerName } = this.#statements;
    const put = () => stems.forEach((stem) => void putFormerName.run(stem, narName));
    // Nothing holds them in memory.
    const write = () => this.#transactions.within(put, { keepsRevision: true });
    await this.#unlocked(write, undefined, Infinity);
  }

  async documentPiece(id: number, number: number): Promise<Bytes | undefined> {
    return this.#read("documentPiece").get(id, number)?.["bytes"] as Bytes | undefined;
  }

  async recordHistory(
    rows: readonly HistoryRow[],
    expired: readonly ExpiredSlots[],
  ): Promise<void> {
    const statements = this.#statements;
    await this.#withoutRevision(() => {
      for (const { tier, atMs, figure, amount } of rows) {
        statements[MERGES[FIGURES[figure]]].run(tier, atMs, figure, amount);
      }
      for (const { tier, beforeMs } of expired) statements.expireHistory.run(tier, beforeMs);
    });
  }

  async recordPulls(rows: readonly PullRow[]): Promise<void> {
    const { addPull, expirePulls } = this.#statements;
    await this.#withoutRevision(() => {
      for (const { id, client, summary, paths } of rows) addPull.run(id, client, summary, paths);
      expirePulls.run(PULLS_MAX);
    });
  }

  async apply(changes: readonly Change[], options?: WriteOptions): Promise<void> {
    if (changes.length === 0) return;
    if (changes.every(isTouch)) await this.#transactions.ready();
    if (this.#closed) throw closedFailure();
    const write = () => this.#queue.write(changes, options);
    await this.#references.around(changes, options?.mustWait ?? false, write);
    if (changes.some(({ kind }) => kind === "remove-narinfo")) void this.#references.drain();
  }

  async databaseSize(): Promise<DatabaseSize> {
    const row = this.#read("databaseSize").get();
    return { bytes: Number(row?.["bytes"]), countedBytes: Number(row?.["counted_bytes"]) };
  }

  async reserve(
    member: MemberId,
    { neededBytes, wantedBytes, limitBytes }: ReserveOrder,
  ): Promise<number | undefined> {
    return await this.#withoutRevision(() => {
      const row = this.#statements.reserve.get(member, limitBytes, neededBytes, wantedBytes);
      return row && Number(row["reserved_bytes"]);
    });
  }

  async beat(
    member: MemberId,
    { reservedBytes, limitBytes, url }: HeartbeatOrder,
  ): Promise<number> {
    const { ageBeats, beat } = this.#statements;
    return await this.#withoutRevision(() => {
      const nowMs = this.#nowMs();
      ageBeats.run(nowMs);
      const row = beat.get(member, limitBytes, reservedBytes, nowMs, url ?? null);
      return Number(row?.["reserved_bytes"]);
    });
  }

  async members(observer: MemberId): Promise<readonly Member[]> {
    return this.#read("members").all(observer, this.#nowMs()).map(({ id, silent_ms, url }) => ({
      ...{ id: String(id), silentMs: Math.max(0, Number(silent_ms)) },
      ...(url === null ? {} : { url: String(url) }),
    }));
  }

  async leave(member: MemberId): Promise<void> {
    await this.#withoutRevision(() => this.#statements.leave.run(member));
  }

  async claimStorageId(id: StorageId): Promise<StorageId> {
    await this.#withoutRevision(() => void this.#statements.claimStorageId.run(id));
    return await this.storageId() ?? id;
  }

  async markCopy(original: string | undefined): Promise<void> {
    const { markCopy: mark, unmarkCopy: unmark } = this.#statements;
    await this.#withoutRevision(() => original === undefined ? unmark.run() : mark.run(original));
  }

  async coldest(countMax: number, after?: string): Promise<readonly ColdEntry[]> {
    if (this.#closed) throw closedFailure();
    return this.#eviction.coldest(countMax, { after });
  }

  async evict(order: EvictionOrder): Promise<Evicted> {
    const evicted = await this.#alone(() => this.#eviction.evict(order));
    if (evicted.narinfos.length > 0) void this.#references.drain();
    return evicted;
  }

  async protect(pathsMax: number): Promise<boolean> {
    if (this.#closed) throw closedFailure();
    // Every few seconds, and nearly always in vain: a transaction would keep others waiting.
    if (!this.#protection.hasStep) return false;
    return await this.#alone(() => this.#protection.step(pathsMax));
  }

  async sweepRows(order: RowSweepOrder): Promise<SweptRows> {
    // What narinfos have left, of a crash too, still names paths.
    if (order.after === FIRST_PATH) await this.#references.drain();
    return await this.#alone(() => sweepUnused(this.#statements, this.#protection, order));
  }

  async recount(): Promise<boolean> {
    return await this.#alone(() => Number(this.#statements.recount.run().changes) === 0);
  }

  async damage(): Promise<readonly string[]> {
    return damageOf(this.#read("quickCheck"));
  }

  async expireNars(order: ExpiryOrder): Promise<readonly PendingFile[]> {
    if (this.#read("expiredNars").get(order.atMs) === undefined) return [];
    return await this.#alone(() => this.#eviction.expire(order));
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    return this.#feed.subscribe(on);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    await this.#references.stop();
    await this.#queue.close(LOCKED_MAX_MS);
    this.#closed = true;
    await this.#transactions[Symbol.asyncDispose]();
  }

  /** Runs `work` in a transaction when no other process has the lock and no checkpoint runs. */
  #alone<Value>(work: () => Value, limitMs?: number): Promise<Value> {
    const ready = () => this.#transactions.ready();
    return this.#unlocked(() => this.#transactions.within(work), ready, limitMs);
  }

  /** Small writes of ledger and history: they raise no revision and disturb no checkpoint. */
  #withoutRevision<Value>(work: () => Value): Promise<Value> {
    return this.#unlocked(() => this.#transactions.within(work, { keepsRevision: true }));
  }

  async #unlocked<Value>(
    write: () => Value,
    ready?: () => Promise<void>,
    limitMs = LOCKED_MAX_MS,
  ): Promise<Value> {
    for (let leftMs = limitMs;; leftMs -= LOCKED_RETRY_MS) {
      if (ready !== undefined) await ready();
      if (this.#closed) throw closedFailure();
      try {
        return write();
      } catch (error) {
        if (!isLocked(error) || leftMs <= 0) throw sqliteWriteFailure(error);
        await clock.pause(LOCKED_RETRY_MS);
      }
    }
  }

  /** One row for each stored path, read in time slices. */
  async #each<Columns>(
    name: "graphRow" | "narinfoBody",
    storePathHashes: readonly StorePathHash[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Columns[]> {
    signal?.throwIfAborted();
    const slice = clock.slice(signal);
    const rows: Columns[] = [];
    for (const storePathHash of storePathHashes) {
      const row = this.#read(name).get(storePathHash);
      if (row !== undefined) rows.push(row as unknown as Columns);
      if (slice.isOver) await slice.yield();
    }
    return rows;
  }

  protected override rows<Row>(
    name: ReadName,
    ...values: readonly (string | number | null)[]
  ): readonly Row[] {
    return this.#read(name).all(...values) as readonly unknown[] as readonly Row[];
  }

  #read(name: keyof Statements) {
    if (this.#closed) throw closedFailure();
    return this.#statements[name];
  }
}

/** SQLite's line above the faults of one database. */
const HEADING_REGEXP = /^\*\*\* in database \w+ \*\*\*$/;

/** One line for each fault that `PRAGMA quick_check` finds. Throws where it does not end. */
function damageOf(quickCheck: StatementSync): readonly string[] {
  const lines: string[] = [];
  try {
    // A corrupt page may end the check with an error: all() would lose the lines before.
    for (const row of quickCheck.iterate()) lines.push(...String(row["quick_check"]).split("\n"));
  } catch (error) {
    if (resultCodeOf(error) !== SQLITE_CORRUPT) throw error;
    lines.push(messageOf(error));
  }
  if (lines.length === 0) throw new Failure("broken", "Cannot check database: no result came");
  return lines.filter((line) => line !== "ok" && !HEADING_REGEXP.test(line));
}

/** The longest delay until changes of another process are noticed. */
const POLL_EVERY_MS = 1_000;

interface DataVersionFeedDeps {
  /** `PRAGMA data_version` of the writing connection: only commits of others change it. */
  readonly dataVersion: () => unknown;
  /** The column `stock.revision`: heartbeats, uses and reservations do not raise it. */
  readonly revision: () => number;
  readonly pollEveryMs?: number;
}

/**
 * Polls SQLite's data version while there are subscribers. It costs no read of the database, and
 * heartbeats change it, so the revision decides.
 */
export class DataVersionFeed implements ChangeFeed {
  readonly #deps: DataVersionFeedDeps;
  readonly #subscribers = new Subscribers();
  #timer: Timer | undefined;
  #dataVersion: unknown;
  /** The last revision that was read, plus this connection's raises since. */
  #revision: number | undefined;

  constructor(deps: DataVersionFeedDeps) {
    this.#deps = deps;
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    if (this.#timer === undefined) {
      this.#hasMoved();
      this.#timer = clock.every(this.#deps.pollEveryMs ?? POLL_EVERY_MS, () => this.#poll());
    }
    return this.#subscribers.add(on, () => this.#stopUnused());
  }

  /** Call it once this connection has raised the revision by one: subscribers know its changes. */
  raised(): void {
    // The next poll finds the changes of others.
    if (this.#revision !== undefined) this.#revision++;
  }

  #stopUnused(): void {
    if (!this.#subscribers.isEmpty) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #poll(): void {
    try {
      if (!this.#hasMoved()) return;
    } catch {
      // The next reader of a row reports the same error; a later poll finds the change.
      return;
    }
    this.#subscribers.report("all");
  }

  /** True if another process has raised the revision since the last call. */
  #hasMoved(): boolean {
    const dataVersion = this.#deps.dataVersion();
    if (dataVersion === this.#dataVersion) return false;
    // Read second: a commit between both reads moves the data version once more, and is known.
    const revision = this.#deps.revision();
    const hasMoved = revision !== this.#revision;
    this.#dataVersion = dataVersion;
    this.#revision = revision;
    return hasMoved;
  }
}

interface SqliteMemberBoardDeps {
  readonly statements: Statements;
  readonly nowMs: () => number;
  /** Runs a small write in a transaction. */
  readonly within: <Value>(work: () => Value) => Promise<Value>;
}

/** The reports of the members in an SQLite file. */
class SqliteMemberBoard implements MemberBoard {
  readonly #deps: SqliteMemberBoardDeps;

  constructor(deps: SqliteMemberBoardDeps) {
    this.#deps = deps;
  }

  report(member: MemberId, status: string): Promise<readonly MemberReport[]> {
    const { statements, nowMs, within } = this.#deps;
    return within(() => {
      const atMs = nowMs();
      statements.ageReports.run(atMs);
      statements.putReport.run(member, atMs, status);
      statements.expireReports.run(atMs - REPORT_KEPT_MS);
      const rows = statements.reports.all(member, REPORTS_MAX);
      return readReports(rows as unknown as readonly ReportColumns[]);
    });
  }

  async withdraw(member: MemberId): Promise<void> {
    const { statements, within } = this.#deps;
    await within(() => statements.removeReport.run(member));
  }

  /** All members have the clock of their machine. */
  sharedNowMs(): Promise<number> {
    return Promise.resolve(this.#deps.nowMs());
  }
}
