import { DatabaseSync } from "node:sqlite";
import { generateSecretKey } from "../../../src/nix/signature.ts";
import { cpuBetween, type CpuTimes } from "../cpu_times.ts";
import { larderLauncher } from "../launchers.ts";
import type { Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";
import { FILE_BYTES, foldersOf, type LargeCache } from "./large_cache.ts";
import { askedMs, percentile, steadyLatencies } from "./steady_client.ts";

/** Number of entries to evict. */
export const EVICTED = 30_000;

/** Twice the entries in memory: half of the answers read the database. */
const PATHS = 20_000;

/** The load of twenty busy Nix clients, which leaves a core free. */
const PER_SECOND = 500;

/** Eviction frees this share of the bytes that pins leave. */
const HEADROOM = 0.1;

const WARM_UP_MS = 2_000;
const BEFORE_MS = 5_000;
const POLL_EVERY_MS = 100;
const SCRAPES = 100;

export interface Latency {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly longestMs: number;
  /** CPU time of larder meanwhile. */
  readonly cpu: CpuTimes;
}

export interface ServedFigures {
  readonly before: Latency;
  /** Scrapes of `/metrics`, one after the other. */
  readonly scrapes: Latency;
  readonly during: Latency;
  readonly evictedCount: number;
  readonly evictionSeconds: number;
}

/** Measures the hits of an idle larder, and of one that evicts. */
export async function measureServed(
  workplace: Workplace,
  { folder }: LargeCache,
  executable: string | undefined,
): Promise<ServedFigures> {
  using database = new DatabaseSync(foldersOf({ folder }).database, { readOnly: true });
  const paths = hottest(database);
  const load = (server: Server, goesOn: () => boolean) =>
    steadyLatencies({ url: server.url, paths, perSecond: PER_SECOND, goesOn });

  const serving = larderOn(workplace, folder, executable);

  const quiet = await serving({ "prometheus-enabled": "true" }, async (server) => {
    await load(server, forMs(WARM_UP_MS));
    const before = await latencyOf(server, () => load(server, forMs(BEFORE_MS)));
    return { before, scrapes: await latencyOf(server, () => scrapesOf(server)) };
  });

  const { files, protectedFiles } = stockOf(database);
  const target = files - EVICTED;
  const stop = Math.floor((target - HEADROOM * protectedFiles) / (1 - HEADROOM));
  // Larder evicts at its start if it keeps more than the limit.
  const limit = Math.min(files - 1, stop);
  const flags = { "cache-max-size": String(limit * FILE_BYTES) };
  return await serving(flags, async (server) => {
    const startedAtMs = performance.now();
    const isOver = polled(() => stockOf(database).files <= target);
    const during = await latencyOf(server, () => load(server, () => !isOver()));
    const evictionSeconds = (performance.now() - startedAtMs) / 1_000;
    const evictedCount = files - stockOf(database).files;
    return { ...quiet, during, evictedCount, evictionSeconds };
  });
}

async function scrapesOf(server: Server): Promise<readonly number[]> {
  const latencies: number[] = [];
  for (let count = 0; count < SCRAPES; count++) {
    latencies.push(await askedMs(`${server.url}/metrics`));
  }
  return latencies;
}

/** Runs a larder on the folder during some work. */
function larderOn(workplace: Workplace, folder: string, executable: string | undefined) {
  const publicKey = generateSecretKey("nobody-1").publicKey.text;
  // Nobody listens there: all requested files are kept.
  const upstreamUrl = "http://127.0.0.1:9";
  return async function serving<Value>(
    flags: Readonly<Record<string, string>>,
    work: (server: Server) => Promise<Value>,
  ): Promise<Value> {
    const launcher = larderLauncher(workplace, { upstreamUrl, publicKey, executable, flags });
    await using server = await launcher.launch(folder);
    return await work(server);
  };
}

/** Paths spread over all that stay. */
function hottest(database: DatabaseSync): readonly string[] {
  const rows = database.prepare(
    `SELECT p.hash FROM narinfo_use u JOIN path p ON p.id = u.path_id
     WHERE u.protected = 0 ORDER BY u.used_at_ms DESC LIMIT ?`,
  ).all(PATHS);
  return rows.map((row) => `/${row["hash"]}.narinfo`);
}

function stockOf(database: DatabaseSync) {
  const row = database.prepare("SELECT kept_files, protected_bytes FROM stock").get();
  return {
    files: Number(row?.["kept_files"]),
    protectedFiles: Number(row?.["protected_bytes"]) / FILE_BYTES,
  };
}

function forMs(durationMs: number): () => boolean {
  const untilMs = performance.now() + durationMs;
  return () => performance.now() < untilMs;
}

/** A condition, polled; once true, it stays so. */
function polled(isTrue: () => boolean): () => boolean {
  let [polledAt, answer] = [-Infinity, false];
  return () => {
    const now = performance.now();
    if (answer || now - polledAt < POLL_EVERY_MS) return answer;
    polledAt = now;
    return answer = isTrue();
  };
}

async function latencyOf(
  server: Server,
  load: () => Promise<readonly number[]>,
): Promise<Latency> {
  const before = server.cpuTimes();
  const latencies = await load();
  return {
    medianMs: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    longestMs: Math.max(...latencies),
    cpu: cpuBetween(before, server.cpuTimes()),
  };
}
