import { openDatabase } from "../../src/metadata/sqlite/connection.ts";
import { generateSecretKey } from "../../src/nix/signature.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Server, Workplace } from "./servers.ts";

const ENTRIES = 1_000_000;
/**
 * Accounted bytes of each NAR file. On disk it has one byte: only the number of files matters here.
 */
const FILE_BYTES = 50_000;
/** Paths of the largest closures, which are chains with shortcuts. */
const CHAIN_PATHS = 1_250;
/** Spreads the ages over the ids. In this worst case, no two neighbours have one age. */
const AGE_STEP = 7_368_787;

/** Entries that larder evicts, and the hits beside that, of which half read the database. */
const EVICTED = 30_000;
const PATHS = 20_000;
/** The load of twenty busy Nix clients, which leaves a core free. */
const PER_SECOND = 500;
const SCRAPES = 100;

/**
 * Measures hits with a million entries: of an idle larder, beside scrapes, and while it evicts thirty
 * thousand entries. Takes a minute or two, mostly for writing the million. Returns Markdown.
 */
export async function measureEviction(workplace: Workplace, executable?: string): Promise<string> {
  const folder = workplace.makeFolder("large");
  await makeLargeCache(folder);
  await workplace.run("sync");
  using database = await openDatabase(`${folder}/db.sqlite`);
  const filesCount = () =>
    Number(database.prepare("SELECT kept_files FROM stock").get()?.["kept_files"]);
  // Spread over all that stay.
  const paths = database.prepare(
    `SELECT p.hash FROM narinfo_use u JOIN path p ON p.id = u.path_id
     WHERE u.protected = 0 ORDER BY u.used_at_ms DESC LIMIT ?`,
  ).all(PATHS).map((row) => `/${row["hash"]}.narinfo`);
  const launched = (flags: Readonly<Record<string, string>>) => {
    const publicKey = generateSecretKey("nobody-1").publicKey.text;
    // Nobody listens there: all requested files are stored.
    const upstreamUrl = "http://127.0.0.1:9";
    const all = { "server-connections-per-address": "1000", ...flags };
    return workplace.larder({ upstreamUrl, publicKey, executable, flags: all }).launch(folder);
  };
  const rows: string[] = [];
  {
    await using server = await launched({ "prometheus-enabled": "true" });
    await hits(server, paths, forMs(2_000));
    rows.push(rowOf("nothing else happens", await hits(server, paths, forMs(5_000))));
    const scrapes: number[] = [];
    while (scrapes.length < SCRAPES) scrapes.push(await askedMs(`${server.url}/metrics`));
    rows.push(rowOf("scrapes of /metrics, nothing else happens", scrapes, 10));
  }
  // It evicts at its start, as it keeps more than the limit.
  await using server = await launched({ "cache-max-size": String((ENTRIES - 1) * FILE_BYTES) });
  const startedAtMs = performance.now();
  const latencies = await hits(server, paths, () => filesCount() > ENTRIES - EVICTED);
  const rate = EVICTED / (performance.now() - startedAtMs) * 1_000;
  rows.push(rowOf(`30,000 entries are evicted, ${rate.toFixed(0)} a second`, latencies, 20));
  const head =
    "| narinfo hits, 500 a second, a million entries | median | p99 | longest | target | |";
  return [head, "| --- | ---: | ---: | ---: | ---: | --- |", ...rows, ""].join("\n");
}

function rowOf(name: string, latencies: readonly number[], p99MaxMs?: number): string {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, sorted.length * part | 0)] ?? NaN;
  const shown = [at(0.5), at(0.99), at(1)].map((ms) => `${ms.toFixed(2)} ms`).join(" | ");
  const verdict = at(0.99) <= (p99MaxMs ?? Infinity) ? "reached" : "MISSED";
  const target = p99MaxMs === undefined ? "– |" : `p99 ≤ ${p99MaxMs} ms | ${verdict}`;
  return `| ${name} | ${shown} | ${target} |`;
}

function forMs(durationMs: number): () => boolean {
  const untilMs = performance.now() + durationMs;
  return () => performance.now() < untilMs;
}

/** Requests the paths in turn at a steady rate, whatever the answers take: latencies in ms. */
async function hits(
  { url }: Server,
  paths: readonly string[],
  goesOn: () => boolean,
): Promise<readonly number[]> {
  const startedAtMs = performance.now();
  const answers: Promise<number>[] = [];
  let failure: unknown;
  while (goesOn() && failure === undefined) {
    const due = (performance.now() - startedAtMs) * PER_SECOND / 1_000;
    while (answers.length < due) {
      const answer = askedMs(`${url}${paths[answers.length % paths.length]}`);
      answers.push(answer.catch((error) => failure = error));
    }
    await clock.pause(1);
  }
  const latencies = await Promise.all(answers);
  if (failure !== undefined) throw failure;
  return latencies;
}

/** Latency of a whole answer in ms. Throws unless it is a 200. */
async function askedMs(url: string): Promise<number> {
  const sentAt = performance.now();
  const response = await fetch(url);
  await response.bytes();
  if (response.status !== 200) throw new Error(`Cannot measure: ${response.status} for ${url}`);
  return performance.now() - sentAt;
}

/** Writes the folder of a larder with the files of its coldest entries. */
async function makeLargeCache(folder: string): Promise<void> {
  Deno.mkdirSync(`${folder}/nar`);
  using database = await openDatabase(`${folder}/db.sqlite`);
  database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE");
  database.exec("PRAGMA cache_size = -1000000");
  database.exec("BEGIN");
  for (const sql of rowsOf()) database.exec(sql);
  database.exec("COMMIT");
  database.exec("PRAGMA journal_mode = WAL");
  const coldest = database.prepare(
    `SELECT n.name FROM narinfo_use u JOIN narinfo i ON i.path_id = u.path_id
       JOIN nar n ON n.id = i.nar_id
     ORDER BY u.protected, u.used_at_ms LIMIT ?`,
  ).all(EVICTED + 20_000) as unknown as readonly { readonly name: string }[];
  for (const { name } of coldest) {
    const shard = `${folder}/nar/${name.slice(0, 2)}`;
    Deno.mkdirSync(shard, { recursive: true });
    Deno.writeFileSync(`${shard}/${name}`, new Uint8Array(1));
  }
}

/** Hashes are random base 16 digits without "e", which nix32 lacks. */
function rowsOf(): readonly string[] {
  const n = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ${ENTRIES})`;
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
    `INSERT INTO reference ${n} SELECT i + 1, i + d.value + 1
       FROM n, json_each('[0, 1, 7, 31, 101]') d
       WHERE i % ${CHAIN_PATHS} + d.value < ${CHAIN_PATHS} AND i + d.value < ${ENTRIES}`,
    `INSERT INTO narinfo_use ${n}
       SELECT i + 1, 1000000000000 + (i * ${AGE_STEP}) % ${ENTRIES}, 0, 1 FROM n`,
    `UPDATE stock SET kept_files = ${ENTRIES}, kept_bytes = ${ENTRIES * FILE_BYTES}`,
  ];
}
