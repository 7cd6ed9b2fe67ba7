import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { type StoredName, storedName } from "../../nix/stored_name.ts";
import { clock } from "../../runtime/current.ts";
import { type ColdColumns, type Position, positionsAfter, readColdEntry } from "../stored_rows.ts";
import {
  type ColdEntry,
  EMPTIES_SHARE,
  type Evicted,
  EVICTED_PATHS_MAX,
  type EvictionOrder,
  type ExpiryOrder,
  type PendingFile,
  UNCOUNTED_BYTES,
} from "../space_keeper.ts";
import {
  NAR_GRACE_MS,
  PATHS_PER_ROW,
  type RowSweepOrder,
  type SweptRows,
} from "../metadata_store.ts";
import type { Protection } from "./pins.ts";
import { removeNarinfo } from "./reference_slices.ts";
import type { Statements } from "./statements.ts";

interface EvictionRow extends ColdEntry {
  /** The path's id, or that of the NAR file without a narinfo. */
  readonly id: number;
  /** The entry's NAR file. */
  readonly at: StoredName;
  readonly narId: number;
}

interface ColdestOptions {
  /** Lists entries after this cursor. */
  readonly after?: string | undefined;
  /** NAR files to leave out, with their narinfos. */
  readonly spared?: ReadonlySet<NarName>;
}

const NONE: ReadonlySet<NarName> = new Set();

/** Chooses the entries to evict, and removes their rows. */
export class Eviction {
  readonly #statements: Statements;
  readonly #protection: Protection;

  constructor(statements: Statements, protection: Protection) {
    this.#statements = statements;
    this.#protection = protection;
  }

  /** Narinfos and loose NAR files merged by age; at the same age narinfos come first. */
  coldest(
    countMax: number,
    { after, spared = NONE }: ColdestOptions = {},
  ): readonly EvictionRow[] {
    const { coldNarinfos, coldLooseNars } = this.#statements;
    // One parameter for any number of names.
    const names = JSON.stringify([...spared]);
    const page = { countMax, names };
    const from = positionsAfter(after);
    const narinfos = this.#list(coldNarinfos, from.narinfos, page);
    const loose = this.#list(coldLooseNars, from.looseNars, page);
    if (loose.length === 0) return narinfos;
    return [...narinfos, ...loose].sort((a, b) => a.usedAtMs - b.usedAtMs).slice(0, countMax);
  }

  /** Call it within a transaction. */
  evict(order: EvictionOrder): Evicted {
    const { bytesMin, entriesMax, spared, owner, usedBeforeMs = Infinity } = order;
    const narinfos: StorePathHash[] = [];
    const files: PendingFile[] = [];
    let [bytes, entries, youngestMs] = [0, 0, -Infinity];
    if (!this.#protection.settled) return { narinfos, files, entries, settled: false };
    for (const entry of this.coldest(entriesMax, { spared })) {
      if (bytes >= bytesMin || entry.usedAtMs >= usedBeforeMs) break;
      const { storePathHash, at, narId, keptBytes } = entry;
      entries++;
      youngestMs = entry.usedAtMs;
      if (storePathHash !== undefined) {
        removeNarinfo(this.#statements, entry.id);
        this.#statements.addLooseNar.run(entry.usedAtMs, narId);
        narinfos.push(storePathHash);
      }
      if (!this.#mark(narId, owner)) continue;
      files.push({ at, owner, fileSize: keptBytes });
      bytes += keptBytes;
    }
    if (entries > 0) {
      const countMax = Math.ceil(entriesMax * EMPTIES_SHARE);
      narinfos.push(...this.#evictEmpties(youngestMs, countMax, spared));
    }
    if (order.atMs !== undefined) this.#note(narinfos, order.atMs);
    return { narinfos, files, entries, settled: true };
  }

  #note(narinfos: readonly StorePathHash[], atMs: number): void {
    for (const storePathHash of narinfos) this.#statements.noteEvicted.run(storePathHash, atMs);
    this.#statements.forgetEvicted.run(EVICTED_PATHS_MAX);
  }

  /** Marks expired uploads. Call it within a transaction. */
  expire({ atMs, spared, owner }: ExpiryOrder): readonly PendingFile[] {
    const files: PendingFile[] = [];
    for (const { id, name, kept_id, kept_size } of this.#statements.expiredNars.all(atMs)) {
      const narName = String(name) as NarName;
      if (spared.has(narName) || !this.#mark(Number(id), owner)) continue;
      this.#statements.stageNar.run(0, Number(id));
      const at = storedName(narName, String(kept_id));
      files.push({ at, owner, fileSize: Number(kept_size) });
    }
    return files;
  }

  /** Removes equally cold narinfos without a NAR file, which frees no bytes. */
  #evictEmpties(
    sinceMs: number,
    countMax: number,
    spared: ReadonlySet<NarName>,
  ): readonly StorePathHash[] {
    const names = JSON.stringify([...spared]);
    const empties = this.#statements.coldEmpties.all(sinceMs, names, countMax);
    for (const row of empties) {
      removeNarinfo(this.#statements, Number(row["id"]));
      this.#statements.addLooseNar.run(Number(row["used_at_ms"]), Number(row["nar_id"]));
    }
    return empties.map(({ hash }) => hash as StorePathHash);
  }

  #list(
    statement: Statements[keyof Statements],
    { usedAtMs, id }: Position,
    { names, countMax }: { readonly names: string; readonly countMax: number },
  ): readonly EvictionRow[] {
    return statement.all(usedAtMs, id, names, countMax).map((row) => {
      const columns = row as unknown as ColdColumns;
      return {
        ...readColdEntry(columns),
        at: storedName(columns.name as NarName, columns.kept_id),
        id: columns.id,
        narId: columns.nar_id,
      };
    });
  }

  /** False where another narinfo names the file, or none is kept. */
  #mark(narId: number, owner: string): boolean {
    if (Number(this.#statements.markUnnamedNar.run(owner, narId).changes) === 0) return false;
    this.#statements.unkeepNar.run(narId);
    return true;
  }
}

/** The position in front of the first path. */
export const FIRST_PATH = "0";

/** The longest batch: rows from the disk take their time. */
const SLICE_MS = 2;

/** The statements that find and remove unused rows. Eviction finds narinfos the same way. */
export const ROW_SWEEP_SQL = {
  unusedNars: `SELECT l.nar_id AS id, n.name FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept = 0 AND l.used_at_ms <= ?
      AND NOT EXISTS (SELECT 1 FROM pending_file WHERE nar_id = l.nar_id)
      AND n.name NOT IN (SELECT value FROM json_each(?))
    ORDER BY l.used_at_ms, l.nar_id LIMIT ?`,
  removeSources: "DELETE FROM nar_source WHERE nar_id = ?",
  removeNar: "DELETE FROM nar WHERE id = ?",
  removeUnusedNar: `DELETE FROM nar WHERE name = ? AND kept_size IS NULL
    AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id)
    AND NOT EXISTS (SELECT 1 FROM pending_file WHERE nar_id = nar.id)
    RETURNING id`,
  lastOfPaths: "SELECT max(id) AS id FROM (SELECT id FROM path WHERE id > ? ORDER BY id LIMIT ?)",
  // A path has a use row as long as a narinfo, and use rows take far fewer pages.
  removeUnnamedPaths: `DELETE FROM path WHERE id > ? AND id <= ?
    AND NOT EXISTS (SELECT 1 FROM narinfo_use WHERE path_id = path.id)
    AND NOT EXISTS (SELECT 1 FROM reference WHERE dst = path.id)
    AND NOT EXISTS (SELECT 1 FROM reference_rest WHERE path_id = path.id)
    AND NOT EXISTS (SELECT 1 FROM protected_path WHERE path_id = path.id)`,
} as const;

/**
 * Removes unused rows: first narinfos, then NARs, then the paths left over. Call it within a
 * transaction.
 */
export function sweepUnused(
  statements: Statements,
  { settled }: Protection,
  order: RowSweepOrder,
): SweptRows {
  const { rowsMax, after } = order;
  const nothing = { narinfos: [], nars: [], paths: 0, settled: true };
  if (!settled) return { ...nothing, next: after ?? "", settled: false };
  // Only the walk over the paths needs a position: swept narinfos and NARs are not found again.
  if (after) {
    return { ...nothing, ...sweepPaths(statements, Number(after), rowsMax * PATHS_PER_ROW) };
  }
  const untilMs = clock.nowMs() + SLICE_MS;
  const narinfos = sweepNarinfos(statements, order, untilMs);
  if (narinfos.length > 0) return { ...nothing, narinfos, next: "" };
  const nars = sweepNars(statements, order, untilMs);
  return { ...nothing, nars, next: nars.length > 0 ? "" : FIRST_PATH };
}

function sweepNarinfos(
  statements: Statements,
  { unusedSinceMs, rowsMax, spared }: RowSweepOrder,
  untilMs: number,
): readonly StorePathHash[] {
  const swept: StorePathHash[] = [];
  for (
    const row of statements.coldEmpties.all(unusedSinceMs, JSON.stringify([...spared]), rowsMax)
  ) {
    removeNarinfo(statements, Number(row["id"]));
    statements.addLooseNar.run(unusedSinceMs + NAR_GRACE_MS, Number(row["nar_id"]));
    swept.push(row["hash"] as StorePathHash);
    if (clock.nowMs() > untilMs) break;
  }
  return swept;
}

function sweepNars(
  { unusedNars, removeSources, removeLooseNar, removeNar }: Statements,
  { unusedSinceMs, rowsMax, spared }: RowSweepOrder,
  untilMs: number,
): readonly NarName[] {
  const swept: NarName[] = [];
  for (const row of unusedNars.all(unusedSinceMs, JSON.stringify([...spared]), rowsMax)) {
    const narId = Number(row["id"]);
    removeSources.run(narId);
    removeLooseNar.run(narId);
    removeNar.run(narId);
    swept.push(row["name"] as NarName);
    if (clock.nowMs() > untilMs) break;
  }
  return swept;
}

function sweepPaths(
  { lastOfPaths, removeUnnamedPaths }: Statements,
  afterId: number,
  countMax: number,
): Pick<SweptRows, "paths" | "next"> {
  const lastId = lastOfPaths.get(afterId, countMax)?.["id"] ?? null;
  if (lastId === null) return { paths: 0 };
  const { changes } = removeUnnamedPaths.run(afterId, lastId);
  return { paths: Number(changes), next: String(lastId) };
}

/** The bytes of all pages in use. Free pages take new rows, so they do not count. */
const DATABASE_BYTES = `(SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size)`;

/** Those of the database that count in the limit. */
const COUNTED_DATABASE_BYTES = `max(0, ${DATABASE_BYTES} - ${UNCOUNTED_BYTES})`;

/**
 * The limit ?2 less all that is stored, the database included, and all that others than ?1 have
 * reserved.
 */
const ROOM = `(SELECT ?2 - kept_bytes - pending_bytes - ${COUNTED_DATABASE_BYTES} -
    (SELECT ifnull(sum(reserved_bytes), 0) FROM member WHERE id <> ?1) FROM stock)`;

/** The sums of `stock`, counted from the rows. */
const COUNTED = `SELECT ifnull(sum(kept_size), 0) AS kept_bytes, count(kept_size) AS kept_files,
    ifnull(sum(kept_size) FILTER (WHERE protected_by > 0), 0) AS protected_bytes,
    (SELECT ifnull(sum(size), 0) FROM pending_file) AS pending_bytes
  FROM nar`;

const DIFFERS = `(stock.kept_bytes, stock.kept_files, stock.protected_bytes, stock.pending_bytes)
  <> (n.kept_bytes, n.kept_files, n.protected_bytes, n.pending_bytes)`;

/** The statements about members, their reserved bytes, kept bytes and eviction. */
export const SPACE_SQL = {
  databaseSize: `SELECT ${DATABASE_BYTES} AS bytes, ${COUNTED_DATABASE_BYTES} AS counted_bytes`,

  wrongSums: `SELECT 1 FROM stock, (${COUNTED}) n WHERE ${DIFFERS}`,
  recount: `UPDATE stock SET kept_bytes = n.kept_bytes, kept_files = n.kept_files,
      protected_bytes = n.protected_bytes, pending_bytes = n.pending_bytes
    FROM (${COUNTED}) n WHERE ${DIFFERS}`,

  reserve: `UPDATE member SET reserved_bytes = max(reserved_bytes, ?3, min(?4, ${ROOM}))
    WHERE id = ?1 AND ?3 <= max(reserved_bytes, ${ROOM}) RETURNING reserved_bytes`,
  beat: `INSERT INTO member (id, heartbeat_at_ms, reserved_bytes, url)
    VALUES (?1, ?4, iif(?3 <= ${ROOM}, ?3, 0), ?5)
    ON CONFLICT DO UPDATE SET heartbeat_at_ms = excluded.heartbeat_at_ms, url = excluded.url,
      reserved_bytes = iif(?3 <= max(reserved_bytes, ${ROOM}), ?3, reserved_bytes)
    RETURNING reserved_bytes`,
  // After the clock was set back: heartbeats from the future would never grow old.
  ageBeats: "UPDATE member SET heartbeat_at_ms = ?1 WHERE heartbeat_at_ms > ?1",
  members: `SELECT id, url, min(?2, ifnull((SELECT heartbeat_at_ms FROM member WHERE id = ?1), ?2))
      - heartbeat_at_ms AS silent_ms FROM member ORDER BY id`,
  leave: "DELETE FROM member WHERE id = ?",
  /** Ends the reservation of a file that is kept now: its bytes are stored. */
  unreserve: `UPDATE member SET reserved_bytes = reserved_bytes - ?1
    WHERE id = ?2 AND reserved_bytes >= ?1`,

  // Entries of one millisecond are in the order of ids, so a read can continue after any.
  coldNarinfos: `SELECT p.hash, u.path_id AS id, u.used_at_ms, n.id AS nar_id, n.name, n.kept_id,
      ifnull(n.kept_size, 0) AS kept_bytes,
      (SELECT count(*) FROM narinfo s WHERE s.nar_id = n.id) AS sharers
    FROM narinfo_use u JOIN path p ON p.id = u.path_id
      JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
    WHERE u.protected = 0 AND u.kept = 1 AND (u.used_at_ms, u.path_id) > (?, ?)
      AND n.name NOT IN (SELECT value FROM json_each(?))
    ORDER BY u.used_at_ms, u.path_id LIMIT ?`,
  coldEmpties: `SELECT p.hash, u.path_id AS id, u.used_at_ms, n.id AS nar_id
    FROM narinfo_use u JOIN path p ON p.id = u.path_id
      JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
    WHERE u.protected = 0 AND u.kept = 0 AND u.used_at_ms <= ?
      AND n.name NOT IN (SELECT value FROM json_each(?))
    ORDER BY u.used_at_ms, u.path_id LIMIT ?`,
  coldLooseNars: `SELECT l.nar_id AS id, l.used_at_ms, l.nar_id, n.name, n.kept_id,
      ifnull(n.kept_size, 0) AS kept_bytes, 0 AS sharers
    FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept = 1 AND l.staged_until_ms = 0 AND (l.used_at_ms, l.nar_id) > (?, ?)
      AND n.name NOT IN (SELECT value FROM json_each(?))
    ORDER BY l.used_at_ms, l.nar_id LIMIT ?`,

  noteEvicted: "INSERT INTO evicted_path (hash, at_ms) VALUES (?, ?)",
  forgetEvicted: "DELETE FROM evicted_path WHERE id <= (SELECT max(id) FROM evicted_path) - ?",

  narIdOfPath: "SELECT nar_id FROM narinfo WHERE path_id = ?",
  touchOf: "SELECT used_at_ms, protected FROM narinfo_use WHERE path_id = ?",
  /** For a NAR that no narinfo names any more. */
  addLooseNar: `INSERT INTO loose_nar (nar_id, used_at_ms, kept)
    SELECT id, ?, kept_size IS NOT NULL FROM nar
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id)
    ON CONFLICT DO UPDATE SET used_at_ms = max(used_at_ms, excluded.used_at_ms)`,
  stageNar: `UPDATE loose_nar SET staged_until_ms = ? WHERE nar_id = ?`,
  expiredNars:
    `SELECT n.id, n.name, n.kept_id, n.kept_size FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.staged_until_ms > 0 AND l.staged_until_ms <= ? AND n.kept_size IS NOT NULL`,
  removeLooseNar: "DELETE FROM loose_nar WHERE nar_id = ?",
  keepNar: `UPDATE nar
    SET kept_id = ?, kept_seal = ?, kept_hash = ?, kept_size = ?, kept_at_ms = ?,
      kept_form = ?
    WHERE id = ?`,
  sealNar: `UPDATE nar SET kept_seal = ?
    WHERE id = ? AND kept_size IS NOT NULL AND kept_id = ?`,
  /** Call it after the file is marked. */
  unkeepNar: `UPDATE nar SET kept_id = '', kept_seal = NULL, kept_hash = NULL, kept_size = NULL,
      kept_at_ms = NULL, kept_form = NULL
    WHERE id = ?`,
  breakNar: `UPDATE nar SET broken_at_ms = max(coalesce(broken_at_ms, 0), ?) WHERE id = ?`,
  replaceableNar: `SELECT 1 FROM nar WHERE id = ? AND kept_size IS NOT NULL AND kept_id = ?
      AND coalesce(broken_at_ms, 0) < ?`,
  loseNar: "UPDATE nar SET seen_at_ms = 0 WHERE id = ? AND seen_at_ms IS NOT NULL",
  /** Marks a file that no narinfo names: a shared one stays. */
  markUnnamedNar: `INSERT INTO pending_file (nar_id, publish_id, owner, size)
    SELECT id, kept_id, ?, kept_size FROM nar WHERE id = ? AND kept_size IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id)
    ON CONFLICT DO UPDATE SET owner = excluded.owner, size = excluded.size`,
  markNar: `INSERT INTO pending_file (nar_id, publish_id, owner, size)
    SELECT id, kept_id, ?, kept_size FROM nar WHERE id = ? AND kept_size IS NOT NULL
      AND kept_id = ?
    ON CONFLICT DO UPDATE SET owner = excluded.owner, size = excluded.size`,
  /** Marks the object that the newly kept one replaces. */
  markFormerNar: `INSERT INTO pending_file (nar_id, publish_id, owner, size)
    SELECT id, kept_id, ?, kept_size FROM nar WHERE id = ? AND kept_size IS NOT NULL
      AND kept_id <> ?
    ON CONFLICT DO UPDATE SET owner = excluded.owner, size = excluded.size`,
  publishNar: `INSERT INTO pending_file (nar_id, publish_id, owner, size) VALUES (?, ?, ?, 0)`,
  takeNar: "UPDATE pending_file SET owner = ? WHERE nar_id = ? AND publish_id = ?",
  addStuck: `INSERT INTO pending_file (nar_id, publish_id, owner, size) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET owner = excluded.owner, size = excluded.size`,
  settle: "DELETE FROM pending_file WHERE nar_id = ? AND publish_id = ? RETURNING owner",
  // CROSS: otherwise SQLite reads the names of all NARs and seeks each among the pending ones.
  pendingFiles: `SELECT n.name, f.publish_id, f.owner, f.size
    FROM pending_file f CROSS JOIN nar n ON n.id = f.nar_id`,
} as const;
