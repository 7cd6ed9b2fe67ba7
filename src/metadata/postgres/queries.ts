import type { Query } from "./pg.d.ts";

/** A pin root with the names that hold it. */
const ROOT = `SELECT r.hash, r.pinned_at_ms, r.by_hand, r.keep_complete, r.look,
    (SELECT string_agg(n.name, ' ') FROM pin_name n WHERE n.hash = r.hash) AS names
  FROM pin_root r`;

/** The queries of the metadata store, by their purpose. Each is prepared once a connection. */
const SQL = {
  findNarinfo: `SELECT i.body, i.trusted, i.own_public_key, i.own_signature, n.name
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
    WHERE p.hash = $1`,
  findNar: `SELECT id, name, nar_hash, nar_size, file_hash, file_size, seen_at_ms,
      kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form, broken_at_ms
    FROM nar WHERE name = $1`,
  // `~` sorts above every character of a name.
  keptNars: `SELECT name, kept_hash, kept_size, kept_id, kept_seal, kept_at_ms, kept_form
    FROM nar
    WHERE name >= $1 AND name < $1 || '~' AND kept_size IS NOT NULL ORDER BY name`,
  // Each part reads its index from the newest on.
  usedNars: `SELECT * FROM (
      SELECT u.path_id AS id, u.used_at_ms, n.name, n.kept_form, n.kept_size, n.broken_at_ms
      FROM narinfo_use u JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
      WHERE u.protected AND u.kept AND (u.used_at_ms, u.path_id) < ($1, $2)
      ORDER BY u.used_at_ms DESC, u.path_id DESC LIMIT $3) AS one
    UNION ALL SELECT * FROM (
      SELECT u.path_id AS id, u.used_at_ms, n.name, n.kept_form, n.kept_size, n.broken_at_ms
      FROM narinfo_use u JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
      WHERE NOT u.protected AND u.kept AND (u.used_at_ms, u.path_id) < ($1, $2)
      ORDER BY u.used_at_ms DESC, u.path_id DESC LIMIT $3) AS other
    ORDER BY used_at_ms DESC, id DESC LIMIT $3`,
  sourcesOf: `SELECT s.upstream, s.location FROM nar n JOIN nar_source s ON s.nar_id = n.id
    WHERE n.name = $1`,
  narinfosOf: `SELECT p.hash FROM nar n JOIN narinfo i ON i.nar_id = n.id
    JOIN path p ON p.id = i.path_id WHERE n.name = $1 ORDER BY p.id`,
  referencesOf: `SELECT d.hash FROM path p JOIN reference r ON r.src = p.id
    JOIN path d ON d.id = r.dst WHERE p.hash = $1`,
  pathTimes: `SELECT
      (SELECT u.used_at_ms FROM path p JOIN narinfo_use u ON u.path_id = p.id WHERE p.hash = $1)
        AS used_at_ms,
      (SELECT at_ms FROM evicted_path WHERE hash = $1 ORDER BY id DESC LIMIT 1) AS evicted_at_ms`,
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
  findSigned: "SELECT digest, uploaded FROM signed_path WHERE hash = $1",
  signedCounts: "SELECT uploaded, upstream FROM signed_path_count",
  lastNarinfo: "SELECT max(path_id) AS id FROM narinfo",
  findPin: `${ROOT} WHERE r.hash = $1`,
  pins: `${ROOT} ORDER BY r.id`,
  namedPins: `SELECT name, hash AS "storePathHash", pinned_at_ms AS "pinnedAtMs", keep
    FROM pin_name ORDER BY name, id`,
  notePin: `UPDATE pin_root SET keep_complete = coalesce($2::boolean, keep_complete),
    look = coalesce($3::text, look) WHERE hash = $1`,

  findDocument: `SELECT id, path, upstream, content_type, content_encoding, tag, size, may_change,
      checked_at_ms, nar_name
    FROM document WHERE path = $1`,
  documentPiece: "SELECT bytes FROM document_piece WHERE document_id = $1 AND number = $2",
  documentBytes: "SELECT document_bytes AS bytes FROM stock",
  debuginfoSourcesOf: "SELECT DISTINCT upstream FROM document WHERE nar_name = $1",

  stock: `SELECT kept_bytes, kept_files, pending_bytes, protected_bytes,
      (SELECT coalesce(sum(reserved_bytes), 0) FROM member WHERE id <> $1) AS reserved_bytes
    FROM stock`,
  wrongSums: `SELECT 1 FROM stock s, counted_stock c
    WHERE (c.kept_bytes, c.kept_files, c.protected_bytes, c.pending_bytes)
      <> (s.kept_bytes, s.kept_files, s.protected_bytes, s.pending_bytes)`,
  coldest: "SELECT * FROM coldest($1, '{}', $2, $3, $4, $5)",
  expired: `SELECT 1 FROM loose_nar
    WHERE staged_until_ms > 0 AND staged_until_ms <= $1 AND kept LIMIT 1`,
  pendingFiles: `SELECT n.name, f.publish_id, f.owner, f.size
    FROM pending_file f JOIN nar n ON n.id = f.nar_id`,

  listNarinfos: `SELECT p.hash AS "storePathHash", u.used_at_ms AS "usedAtMs"
    FROM path p JOIN narinfo_use u ON u.path_id = p.id
    WHERE p.hash > $1 ORDER BY p.hash LIMIT $2`,
  listLooseNars: `SELECT n.name AS "narName", l.used_at_ms AS "usedAtMs",
      l.staged_until_ms AS "stagedUntilMs"
    FROM nar n JOIN loose_nar l ON l.nar_id = n.id WHERE n.name > $1 ORDER BY n.name LIMIT $2`,
  listSignedPaths: `SELECT hash AS "storePathHash", digest, uploaded AS "isUploaded"
    FROM signed_path WHERE hash > $1 ORDER BY hash LIMIT $2`,
  listDocuments: `SELECT path, used_at_ms AS "usedAtMs" FROM document
    WHERE path > $1 ORDER BY path LIMIT $2`,

  history: `SELECT tier, at_ms AS "atMs", figure, amount FROM history`,
  recordPulls: "SELECT record_pulls($1, $2)",
  pulls: `SELECT id, client, summary FROM pull WHERE $1::text IS NULL OR client = $1
    ORDER BY number DESC LIMIT $2`,
  findPull: "SELECT id, client, summary, paths FROM pull WHERE id = $1",

  storageId: "SELECT id FROM storage_id",
  claimStorageId: "INSERT INTO storage_id (id) VALUES ($1) ON CONFLICT DO NOTHING",
  originalName: "SELECT original FROM copy_mark",
  markCopy: `INSERT INTO copy_mark (original) VALUES ($1)
    ON CONFLICT (one) DO UPDATE SET original = excluded.original`,
  unmarkCopy: "DELETE FROM copy_mark",

  databaseSize: "SELECT pg_database_size(current_database()) AS bytes",
  reserve: "SELECT reserve($1, $2, $3, $4) AS reserved_bytes",
  beat: "SELECT beat($1, $2, $3, $4, $5) AS reserved_bytes",
  members: "SELECT id, silent_ms, url FROM members($1, $2)",
  leave: "DELETE FROM member WHERE id = $1",
} as const;

export type QueryName = keyof typeof SQL;

/** Queries that read whole tables. */
const SCANS: ReadonlySet<QueryName> = new Set(["keptNars", "wrongSums"]);

const SCAN_MAX_MS = 600_000;

export function queryOf(name: QueryName, values: readonly unknown[]): Query {
  const query = { name, text: SQL[name], values };
  return SCANS.has(name) ? { ...query, query_timeout: SCAN_MAX_MS } : query;
}
