import { openDatabase } from "../../../src/metadata/sqlite/connection.ts";

/**
 * Accounted bytes of each NAR file. On disk it has one byte: only the number of files matters here.
 */
export const FILE_BYTES = 50_000;

/** Size of some closures: of the first path's, and every so many paths again. See `references`. */
export const CLOSURE_PATHS = 10_000;

const CHAIN_PATHS = CLOSURE_PATHS / 8;

/** First pin root: closures in the middle of a chain have some 1,000 paths. */
const ROOTS_BEGIN_AT = 125;
const ROOTS_OF_CHAIN = 250;

/** Spreads the ages over the ids. In this worst case, no two neighbours have one age. */
const AGE_STEP = 7_368_787;

export interface LargeCache {
  readonly folder: string;
  readonly entries: number;
  /** Number of files, which belong to the coldest entries. */
  readonly files: number;
}

/** The folders of a larder. */
export function foldersOf({ folder }: Pick<LargeCache, "folder">) {
  return { database: `${folder}/db.sqlite`, nars: `${folder}/nar` };
}

/**
 * Ids of 1,000 paths with overlapping closures of 875 to 1,125 paths each: four chains with 250 of
 * them.
 */
export function overlappingRoots(): readonly number[] {
  return Array.from({ length: 4 * ROOTS_OF_CHAIN }, (_, at) => {
    const chain = Math.floor(at / ROOTS_OF_CHAIN);
    return 1 + chain * CHAIN_PATHS + ROOTS_BEGIN_AT + at % ROOTS_OF_CHAIN;
  });
}

/** Writes the folder of a larder with that many entries. A million takes half a minute. */
export async function makeLargeCache(cache: LargeCache): Promise<void> {
  const folders = foldersOf(cache);
  Deno.mkdirSync(folders.nars, { recursive: true });
  using database = await openDatabase(folders.database);
  database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF");
  database.exec("PRAGMA cache_size = -1000000");
  database.exec("BEGIN");
  for (const sql of rowsOf(cache.entries)) database.exec(sql);
  database.exec("COMMIT");
  database.exec("PRAGMA journal_mode = WAL");
  const coldest = database.prepare(
    `SELECT n.name FROM narinfo_use u JOIN narinfo i ON i.path_id = u.path_id
       JOIN nar n ON n.id = i.nar_id
     ORDER BY u.protected, u.used_at_ms LIMIT ?`,
  ).all(cache.files) as unknown as readonly { readonly name: string }[];
  putFiles(folders.nars, coldest.map(({ name }) => name));
}

/** Hashes are random base 16 digits without "e", which nix32 lacks. */
function rowsOf(entries: number): readonly string[] {
  const n = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ${entries})`;
  return [
    `INSERT INTO path ${n}
       SELECT i + 1, replace(lower(hex(randomblob(16))), 'e', 'z') FROM n`,
    `INSERT INTO nar (id, name, nar_hash, nar_size, file_size, kept_hash, kept_size) ${n}
       SELECT i + 1, '1' || substr(replace(lower(hex(randomblob(26))), 'e', 'z'), 2) || '.nar.xz',
         printf('%052d', i), 4 * ${FILE_BYTES}, ${FILE_BYTES}, printf('%052d', i), ${FILE_BYTES}
       FROM n`,
    // As long as the narinfos of nixpkgs.
    `INSERT INTO narinfo
       SELECT p.id, n.id, printf('StorePath: /nix/store/%s-large-1.0' || char(10) ||
         'URL: nar/%s' || char(10) || 'Sig: %0800d' || char(10), p.hash, n.name, 0), 0, NULL, NULL
       FROM path p JOIN nar n ON n.id = p.id`,
    `INSERT INTO nar_source SELECT id, 'https://cache.nixos.org', 'nar/' || name FROM nar`,
    `INSERT INTO reference ${references(n, entries)}`,
    `INSERT INTO narinfo_use ${n}
       SELECT i + 1, 1000000000000 + (i * ${AGE_STEP}) % ${entries}, 0, 1 FROM n`,
    `UPDATE stock SET kept_files = ${entries}, kept_bytes = ${entries * FILE_BYTES}`,
  ];
}

/** Chains with shortcuts. The first path of a chain refers to the next chain of its closure. */
function references(n: string, entries: number): string {
  return `${n}, edge(i, step) AS (
      SELECT i, d.value FROM n, json_each('[0, 1, 7, 31, 101]') d
      WHERE i % ${CHAIN_PATHS} + d.value < ${CHAIN_PATHS}
      UNION ALL SELECT i, ${CHAIN_PATHS} FROM n
      WHERE i % ${CHAIN_PATHS} = 0 AND i % ${CLOSURE_PATHS} + ${CHAIN_PATHS} < ${CLOSURE_PATHS})
    SELECT i + 1, i + step + 1 FROM edge WHERE i + step < ${entries}`;
}

function putFiles(folder: string, names: readonly string[]): void {
  for (const shard of new Set(names.map((name) => name.slice(0, 2)))) {
    Deno.mkdirSync(`${folder}/${shard}`, { recursive: true });
  }
  const byte = new Uint8Array(1);
  for (const name of names) Deno.writeFileSync(`${folder}/${name.slice(0, 2)}/${name}`, byte);
}
