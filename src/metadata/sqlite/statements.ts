import type { DatabaseSync, StatementSync } from "node:sqlite";
import { DOCUMENT_SQL } from "./change_applier.ts";
import { READS } from "../stored_rows.ts";
import { PIN_SQL } from "./pins.ts";
import { REFERENCE_SQL } from "./reference_slices.ts";
import { ROW_SWEEP_SQL, SPACE_SQL } from "./space.ts";

const PUT_FIGURE =
  "INSERT INTO history (tier, at_ms, figure, amount) VALUES (?, ?, ?, ?) ON CONFLICT DO";

/** Ids of one step of a search: far less than a slice, and some milliseconds from the disk. */
export const STEP_IDS = 256;

/** Every statement of the metadata store, by its purpose. */
const SQL = {
  ...READS,
  ...SPACE_SQL,
  ...DOCUMENT_SQL,
  ...ROW_SWEEP_SQL,
  ...REFERENCE_SQL,
  ...PIN_SQL,

  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  // All rows that this connection has written, triggers included.
  rowsWritten: "SELECT total_changes() AS count",

  quickCheck: "PRAGMA quick_check",
  // Changes when another connection commits, not by our own commits.
  dataVersion: "PRAGMA data_version",
  revision: "SELECT revision FROM stock",
  raiseRevision: "UPDATE stock SET revision = revision + 1",

  claimStorageId: "INSERT INTO storage_id (one, id) VALUES (1, ?) ON CONFLICT DO NOTHING",
  markCopy: "INSERT OR REPLACE INTO copy_mark (one, original) VALUES (1, ?)",
  unmarkCopy: "DELETE FROM copy_mark",

  // Each reads one path: on SQLite that costs microseconds.
  graphRow: `SELECT p.hash, n.name, n.kept_size, (
      SELECT string_agg(d.hash, ' ') FROM reference r JOIN path d ON d.id = r.dst
      WHERE r.src = p.id
    ) AS refs
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
    WHERE p.hash = ?`,
  narinfoBody: `SELECT p.hash, i.body FROM path p JOIN narinfo i ON i.path_id = p.id
    WHERE p.hash = ?`,

  addFigure: `${PUT_FIGURE} UPDATE SET amount = amount + excluded.amount`,
  replaceFigure: `${PUT_FIGURE} UPDATE SET amount = excluded.amount`,
  keepFigure: `${PUT_FIGURE} NOTHING`,
  expireHistory: "DELETE FROM history WHERE tier = ? AND at_ms < ?",
  addPull: `INSERT INTO pull (id, client, summary, paths) VALUES (?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
  expirePulls: `DELETE FROM pull
    WHERE number < (SELECT number FROM pull ORDER BY number DESC LIMIT 1 OFFSET ?1 - 1)`,

  putReport: `INSERT INTO member_report (id, reported_at_ms, status) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET reported_at_ms = excluded.reported_at_ms, status = excluded.status`,
  // After the clock was set back: reports from the future would never grow old.
  ageReports: "UPDATE member_report SET reported_at_ms = ?1 WHERE reported_at_ms > ?1",
  expireReports: "DELETE FROM member_report WHERE reported_at_ms < ?",
  reports: `SELECT id, reported_at_ms, status FROM member_report
    ORDER BY id <> ?1, reported_at_ms DESC, id LIMIT ?2`,
  removeReport: "DELETE FROM member_report WHERE id = ?",

  // Only the texts have names: an index would cost each miss.
  lastNarinfo: "SELECT max(path_id) AS id FROM narinfo",
  // The whole text first: to cut out the name costs more. A name begins 55 characters behind the
  // start of its line, and has at most 211.
  named: `SELECT p.hash, named.name FROM (
      SELECT path_id, substr(rest, 1, instr(rest, char(10)) - 1) AS name FROM (
        SELECT path_id,
          substr(body, instr(char(10) || body, char(10) || 'StorePath: ') + 55, 212) AS rest
        FROM narinfo
        WHERE path_id > ?1 - ${STEP_IDS} AND path_id <= ?1 AND body LIKE ?2 ESCAPE '\\')) named
    JOIN path p ON p.id = named.path_id
    WHERE named.name LIKE ?2 ESCAPE '\\' ORDER BY named.path_id DESC`,

  signedCounts: "SELECT uploaded_paths AS uploaded, upstream_paths AS upstream FROM stock",
  putSigned: `INSERT INTO signed_path (hash, digest, uploaded) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET digest = excluded.digest, uploaded = excluded.uploaded`,
  forgetSigned: "DELETE FROM signed_path WHERE hash = ?",

  notePin: `UPDATE pin_root
    SET keep_complete = coalesce(?, keep_complete), look = coalesce(?, look) WHERE hash = ?`,
  putFormerName: `INSERT INTO former_name (stem, nar_id) SELECT ?1, id FROM nar WHERE name = ?2
    ON CONFLICT DO UPDATE SET nar_id = excluded.nar_id`,
  pathId: "SELECT id FROM path WHERE hash = ?",
  findPath: `SELECT p.id, i.nar_id, n.kept_size IS NOT NULL AS is_kept FROM path p
    LEFT JOIN narinfo i ON i.path_id = p.id LEFT JOIN nar n ON n.id = i.nar_id WHERE p.hash = ?`,
  addPath: "INSERT INTO path (hash) VALUES (?)",
  narId: "SELECT id FROM nar WHERE name = ?",
  addNar: `INSERT INTO nar (name, nar_hash, nar_size, file_hash, file_size, seen_at_ms)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
  seeNar: "UPDATE nar SET seen_at_ms = max(coalesce(seen_at_ms, 0), ?) WHERE id = ?",
  putSource: `INSERT INTO nar_source (nar_id, upstream, location) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET location = excluded.location`,
  putNarinfo: `INSERT INTO narinfo
    (path_id, nar_id, body, trusted, own_public_key, own_signature) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET nar_id = excluded.nar_id, body = excluded.body,
      trusted = excluded.trusted, own_public_key = excluded.own_public_key,
      own_signature = excluded.own_signature`,
  removeNarinfo: "DELETE FROM narinfo WHERE path_id = ?",
  removeTouch: "DELETE FROM narinfo_use WHERE path_id = ?",
  addTouch: `INSERT INTO narinfo_use (path_id, used_at_ms, protected, kept)
    VALUES (?1, ?2, EXISTS (SELECT 1 FROM protected_path WHERE path_id = ?1),
      (SELECT kept_size IS NOT NULL FROM nar WHERE id = ?3))
    ON CONFLICT DO UPDATE SET used_at_ms = max(used_at_ms, excluded.used_at_ms)`,
  touchNarinfo: `UPDATE narinfo_use SET used_at_ms = max(used_at_ms, ?1)
    WHERE path_id = (SELECT id FROM path WHERE hash = ?2)`,
  touchNar: `UPDATE narinfo_use SET used_at_ms = max(used_at_ms, ?1)
    WHERE path_id IN (SELECT i.path_id FROM nar n JOIN narinfo i ON i.nar_id = n.id
      WHERE n.name = ?2)`,
  touchLoose: `UPDATE loose_nar SET used_at_ms = max(used_at_ms, ?1)
    WHERE nar_id = (SELECT id FROM nar WHERE name = ?2)`,
} as const;

export type Statements = Readonly<Record<keyof typeof SQL, StatementSync>>;

/** Prepares all statements once: preparing costs more than running. */
export function prepareStatements(database: DatabaseSync): Statements {
  const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)]);
  return Object.fromEntries(prepared) as Statements;
}
