import { READS } from "../stored_rows.ts";
import type { Query } from "./pg.d.ts";

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

export type QueryName = keyof typeof SQL;

/** Queries that read whole tables. */
const SCANS: ReadonlySet<QueryName> = new Set(["keptNars", "wrongSums"]);

const SCAN_MAX_MS = 600_000;

export function queryOf(name: QueryName, values: readonly unknown[]): Query {
  const query = { name, text: SQL[name], values };
  return SCANS.has(name) ? { ...query, query_timeout: SCAN_MAX_MS } : query;
}
