import { UNCOUNTED_BYTES } from "../database_size.ts";

/** The bytes of all pages in use. Free pages take new rows, so they do not count. */
const DATABASE_BYTES = `(SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size)`;

/** Those of the database that count in the limit. */
export const COUNTED_DATABASE_BYTES = `max(0, ${DATABASE_BYTES} - ${UNCOUNTED_BYTES})`;

/** The sums of `stock`, counted from the rows. */
const COUNTED = `SELECT ifnull(sum(kept_size), 0) AS kept_bytes, count(kept_size) AS kept_files,
    ifnull(sum(kept_size) FILTER (WHERE protected_by > 0), 0) AS protected_bytes,
    (SELECT ifnull(sum(size), 0) FROM pending_file) AS pending_bytes
  FROM nar`;

const DIFFERS = `(stock.kept_bytes, stock.kept_files, stock.protected_bytes, stock.pending_bytes)
  <> (n.kept_bytes, n.kept_files, n.protected_bytes, n.pending_bytes)`;

/** The statements about kept bytes, protection and eviction. */
export const SPACE_SQL = {
  databaseSize: `SELECT ${DATABASE_BYTES} AS bytes, ${COUNTED_DATABASE_BYTES} AS counted_bytes`,

  wrongSums: `SELECT 1 FROM stock, (${COUNTED}) n WHERE ${DIFFERS}`,
  recount: `UPDATE stock SET kept_bytes = n.kept_bytes, kept_files = n.kept_files,
      protected_bytes = n.protected_bytes, pending_bytes = n.pending_bytes
    FROM (${COUNTED}) n WHERE ${DIFFERS}`,

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

  isUnsettled: "SELECT 1 FROM protected_path WHERE expanded = 0 LIMIT 1",
  hasStep: `SELECT 1 FROM protected_path WHERE expanded = 0 UNION ALL
    SELECT 1 FROM protected_path WHERE generation < (SELECT generation FROM stock) LIMIT 1`,
  toExpand: `SELECT path_id, generation, visited FROM protected_path
    WHERE expanded = 0 LIMIT ?`,
  // References that no stored narinfo has are none.
  lastOfReferences: `SELECT max(dst) AS last, count(*) AS count FROM (
    SELECT dst FROM reference WHERE src = ?1 AND dst > ?2
      AND EXISTS (SELECT 1 FROM narinfo WHERE path_id = ?1) ORDER BY dst LIMIT ?3)`,
  setVisited: "UPDATE protected_path SET visited = ? WHERE path_id = ? AND generation = ?",
  // A path with a newer generation is visited again, for that generation.
  setExpanded: "UPDATE protected_path SET expanded = 1 WHERE path_id = ? AND generation = ?",
  expand: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT dst, ?1, 0 FROM reference WHERE src = ?2 AND dst > ?3 AND dst <= ?4
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  // A path that is stored anew may have other references than before.
  expandAgain: "UPDATE protected_path SET expanded = 0, visited = -1 WHERE path_id = ?",
  protectRoot: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT ?, generation, 0 FROM stock WHERE true
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  nextGeneration: "UPDATE stock SET generation = generation + 1",
  protectRoots: `INSERT INTO protected_path (path_id, generation, expanded)
    SELECT p.id, s.generation, 0 FROM stock s, pin_root r JOIN path p ON p.hash = r.hash
    WHERE true
    ON CONFLICT DO UPDATE SET generation = excluded.generation, expanded = 0, visited = -1
      WHERE excluded.generation > protected_path.generation`,
  sweepProtected: `DELETE FROM protected_path WHERE path_id IN (
    SELECT path_id FROM protected_path WHERE generation < (SELECT generation FROM stock) LIMIT ?)`,
} as const;
