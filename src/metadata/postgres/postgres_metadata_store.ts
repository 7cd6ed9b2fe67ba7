import type { Bytes } from "../../base/bytes.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import type { MemberId } from "../../base/member_id.ts";
import type { StorageId } from "../../base/storage_id.ts";
import type { NarName, NarStem } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { Changed, ChangeFeed } from "../change_feed.ts";
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
import {
  type Change,
  type CopyMarks,
  type DamageFinder,
  type GraphColumns,
  type GraphRow,
  type KeyKeeper,
  type MetadataStore,
  type NamedPath,
  NAR_GRACE_MS,
  PATHS_PER_ROW,
  type PinNote,
  readBodies,
  readGraphRow,
  type RowLister,
  type RowSweepOrder,
  type StorageIdKeeper,
  type SweptRows,
  type WriteOptions,
} from "../metadata_store.ts";
import { type Migration, readMigrations } from "../migrations.ts";
import {
  type ColdEntry,
  type DatabaseSize,
  EMPTIES_SHARE,
  type Evicted,
  EVICTED_PATHS_MAX,
  type EvictionOrder,
  type ExpiryOrder,
  type HeartbeatOrder,
  type Member,
  type PendingFile,
  type ReserveOrder,
} from "../space_keeper.ts";
import {
  type ColdColumns,
  type PendingFileColumns,
  positionsAfter,
  readColdEntry,
  type ReadName,
  readPendingFile,
  READS,
  StoredRows,
} from "../stored_rows.ts";
import { Database, type DatabaseOptions, NoticeFeed } from "./database.ts";
import { encodeTouches, postgresWriteFailure, type WriteOutcome, Writer } from "./writer.ts";
import { migrate, requireSchema } from "./migrate.ts";
import type { Query } from "./pg.d.ts";

interface PostgresOptions extends DatabaseOptions {
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

/** The queries of the metadata store, by their purpose. Each is prepared once a connection. */
const SQL = {
  ...numbered(READS),

  graphRows: `SELECT p.hash, n.name, n.kept_size, (
      SELECT string_agg(d.hash, ' ') FROM reference r JOIN path d ON d.id = r.dst
      WHERE r.src = p.id
    ) AS refs
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
    WHERE p.hash = ANY($1::text[])`,
  narinfoBodies: `SELECT p.hash, i.body FROM path p JOIN narinfo i ON i.path_id = p.id
    WHERE p.hash = ANY($1::text[])`,
  // A name begins behind the hash and a dash. By bytes, it is found faster.
  findNamed: `SELECT p.hash AS "storePathHash", named.name FROM (
      SELECT path_id, substr(split_part(split_part(
        E'\\n' || body COLLATE "C", E'\\nStorePath: /nix/store/', 2), E'\\n', 1), 34) AS name
      FROM narinfo WHERE path_id > $3 AND path_id <= $4) named
    JOIN path p ON p.id = named.path_id
    WHERE strpos(lower(named.name), lower($1 COLLATE "C")) > 0
    ORDER BY named.path_id DESC LIMIT $2`,
  signedCounts: "SELECT uploaded, upstream FROM signed_path_count",
  lastNarinfo: "SELECT max(path_id) AS id FROM narinfo",
  notePin: `UPDATE pin_root SET keep_complete = coalesce($2::boolean, keep_complete),
    look = coalesce($3::text, look) WHERE hash = $1`,

  putFormerNames: `INSERT INTO former_name (stem, nar_id)
    SELECT unnest($2::text[]), id FROM nar WHERE name = $1
    ON CONFLICT (stem) DO UPDATE SET nar_id = excluded.nar_id`,

  documentBytes: "SELECT document_bytes AS bytes FROM stock",

  wrongSums: `SELECT 1 FROM stock s, counted_stock c
    WHERE (c.kept_bytes, c.kept_files, c.protected_bytes, c.pending_bytes)
      <> (s.kept_bytes, s.kept_files, s.protected_bytes, s.pending_bytes)`,
  coldest: "SELECT * FROM coldest($1, '{}', $2, $3, $4, $5)",
  expired: `SELECT 1 FROM loose_nar
    WHERE staged_until_ms > 0 AND staged_until_ms <= $1 AND kept LIMIT 1`,
  pendingFiles: `SELECT n.name, f.publish_id, f.owner, f.size
    FROM pending_file f JOIN nar n ON n.id = f.nar_id`,

  recordPulls: "SELECT record_pulls($1, $2)",

  claimStorageId: "INSERT INTO storage_id (id) VALUES ($1) ON CONFLICT DO NOTHING",
  markCopy: `INSERT INTO copy_mark (original) VALUES ($1)
    ON CONFLICT (one) DO UPDATE SET original = excluded.original`,
  unmarkCopy: "DELETE FROM copy_mark",

  databaseSize: "SELECT pg_database_size(current_database()) AS bytes",
  reserve: "SELECT reserve($1, $2, $3, $4) AS reserved_bytes",
  beat: "SELECT beat($1, $2, $3, $4, $5) AS reserved_bytes",
  members: "SELECT id, silent_ms, url FROM members($1, $2)",
  leave: "DELETE FROM member WHERE id = $1",
} as const;

/** `?1` is `$1` here. */
function numbered<Names extends string>(reads: Readonly<Record<Names, string>>) {
  const texts = Object.entries<string>(reads).map(([name, text]) => [
    name,
    text.replaceAll(/\?(?=\d)/g, "$$"),
  ]);
  return Object.fromEntries(texts) as Readonly<Record<Names, string>>;
}

type QueryName = keyof typeof SQL;

/** Queries that read whole tables. */
const SCANS: ReadonlySet<QueryName> = new Set(["keptNars", "wrongSums"]);

const SCAN_MAX_MS = 600_000;

function queryOf(name: QueryName, values: readonly unknown[]): Query {
  const query = { name, text: SQL[name], values };
  return SCANS.has(name) ? { ...query, query_timeout: SCAN_MAX_MS } : query;
}

const KEY_SQL = {
  find: "SELECT secret FROM signing_key",
  adopt: "INSERT INTO signing_key (secret) VALUES ($1) ON CONFLICT DO NOTHING",
} as const;

/** The signing key in a PostgreSQL database. */
class PostgresKeyKeeper implements KeyKeeper {
  readonly #database: Pick<Database, "query">;

  constructor(database: Pick<Database, "query">) {
    this.#database = database;
  }

  async signingKey(): Promise<string | undefined> {
    const [row] = await this.#query("find");
    return row && String(row["secret"]);
  }

  async adoptSigningKey(text: string): Promise<string> {
    await this.#query("adopt", text);
    // A statement of its own: the first one does not see a row that another member adds meanwhile.
    const kept = await this.signingKey();
    if (kept === undefined) throw new Failure("broken", "Cannot keep the signing key: it is gone");
    return kept;
  }

  async #query(name: keyof typeof KEY_SQL, ...values: readonly string[]) {
    try {
      return await this.#database.query({ text: KEY_SQL[name], values });
    } catch (error) {
      if (error instanceof Failure) throw error;
      // Without the statement and its values.
      const message = `Cannot use the signing key in the database: ${messageOf(error)}`;
      throw new Failure("broken", message, {}, error);
    }
  }
}

const BOARD_SQL = {
  report: "SELECT id, reported_at_ms, status FROM report_member($1, $2, $3, $4, $5)",
  withdraw: "DELETE FROM member_report WHERE id = $1",
  now: "SELECT coalesce($1, extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms",
} as const;

/** The reports of the members in a PostgreSQL database. */
class PostgresMemberBoard implements MemberBoard {
  readonly #database: Pick<Database, "query">;
  readonly #nowMs: () => number | null;

  /** `nowMs`: `null` is the server's clock. */
  constructor(database: Pick<Database, "query">, nowMs: () => number | null) {
    this.#database = database;
    this.#nowMs = nowMs;
  }

  async report(member: MemberId, status: string): Promise<readonly MemberReport[]> {
    const values = [member, status, this.#nowMs(), REPORT_KEPT_MS, REPORTS_MAX];
    return readReports(await this.#query("report", values) as unknown as readonly ReportColumns[]);
  }

  async withdraw(member: MemberId): Promise<void> {
    await this.#query("withdraw", [member]);
  }

  async sharedNowMs(): Promise<number> {
    return Number((await this.#query("now", [this.#nowMs()]))[0]?.["ms"]);
  }

  /** Waits for no outage: the next report comes soon. */
  async #query(name: keyof typeof BOARD_SQL, values: readonly unknown[]) {
    try {
      return await this.#database.query(
        { name: `${name}Member`, text: BOARD_SQL[name], values },
        0,
      );
    } catch (error) {
      throw postgresWriteFailure(error);
    }
  }
}
