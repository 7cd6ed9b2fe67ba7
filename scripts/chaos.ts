// Runs three real larders on one storage, harms them and their neighbours at random, and checks
// every answer byte for byte. See scripts/chaos/options.ts for the options.
import { clock } from "../src/runtime/current.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { stallAfter } from "../tests/support/faults.ts";
import { runLarder } from "../tests/support/run_larder.ts";
import { type ChaosOptions, readOptions, USAGE } from "./chaos/options.ts";
import { Cluster } from "./chaos/cluster.ts";
import { harm } from "./chaos/faults.ts";
import { KeptPaths } from "./chaos/kept_paths.ts";
import { GrowingWorld } from "./chaos/growing_world.ts";
import { type RequestFigures, UpstreamRequests } from "./chaos/upstream_requests.ts";
import { pullWithNix } from "./chaos/nix_pulls.ts";
import { OwnLoad } from "./chaos/own_load.ts";
import { Client } from "./soak/client.ts";
import { Dice } from "./soak/dice.ts";
import { Tally } from "./soak/tally.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const MINUTE_MS = 60_000;
const REQUESTS_PER_FETCH_MAX = 1.05;
/** The upstream is a little away. */
const UPSTREAM_MS = 20;
/** Large NARs come in two parts, so that faults meet them halfway. */
const PART_BYTES = 1_000_000;
const PART_MS = 700;
/** Pause between two requests of a client: this process, with all of them, must not be slow. */
const REST_MAX_MS = 3_000;
const UNPIN_EVERY_MS = 5_000;
/** The world is larger than this limit by then. */
const EVICTS_AFTER_MINUTES = 10;
const EVICTS_BELOW_MEGABYTES = 500;

const options = optionsOrExit(readOptions, USAGE);
Deno.exit(await chaos(options) ? 0 : 1);

/** Resolves to true if there were no problems. */
async function chaos({ minutes, clients, seed, limitMegabytes }: ChaosOptions): Promise<boolean> {
  console.error(`chaos: ${clients} clients, ${minutes} min, --seed ${seed}`);
  using load = new OwnLoad();
  const startedAtMs = performance.now();
  const isOver = () => performance.now() - startedAtMs > minutes * MINUTE_MS;
  await using upstream = await fakeUpstream({ stored: true });
  const world = new GrowingWorld(upstream, new Dice(seed, "world"));
  await using cluster = await Cluster.start(upstream, limitMegabytes);
  await using kept = await KeptPaths.open(cluster.database);
  const requests = new UpstreamRequests();
  upstream.onRequest = async ({ path, method }) => {
    // Clients ask for absent paths, too.
    if (method === "GET" && world.has(path)) {
      const { health } = cluster;
      const isKept = requests.isLate(path) && await kept.has(path);
      requests.note({ path, ...health, isKept });
    }
    await clock.pause(UPSTREAM_MS);
    return undefined;
  };
  upstream.breakNar((answer, exchange) =>
    stallAfter(PART_BYTES, clock.pause(PART_MS))(answer, exchange)
  );
  const tally = new Tally();
  using _growing = await world.grow(isOver);
  const port = (dice: Dice) => () => dice.pick(cluster.replicas).larder?.port;
  const acting = Array.from({ length: clients }, async (_, at) => {
    const dice = new Dice(seed, `client ${at}`);
    const client = new Client({ dice, tally, world, port: port(dice) });
    while (!isOver()) {
      await clock.pause(dice.below(REST_MAX_MS));
      await client.act();
    }
  });
  const [faults] = await Promise.all([
    harm(cluster, new Dice(seed, "faults"), isOver),
    unpinAll(cluster, isOver),
    cluster.countEvictions(isOver),
    pullWithNix({ world, upstream, cluster, tally, isOver, dice: new Dice(seed, "nix") }),
    ...acting,
  ]);
  const wrongs = [...tally.wrongs, ...await problemsAtTheEnd(cluster)];
  const logged = [...cluster.warnings].map(([msg, count]) => [`log: ${msg}`, count] as const);
  const rows: (readonly [string, string | number])[] = [
    ["database", cluster.postgres === undefined ? "SQLite" : "PostgreSQL"],
    ["NAR files", cluster.s3 === undefined ? "in a folder" : "in S3"],
    ["evicted entries", cluster.evictedEntries],
    ["wrong answers", tally.wrongCount],
    ...faults,
    ...[...tally.counts].toSorted(),
    ...logged,
    ...load.rows,
  ];
  for (const [kind, pattern] of [["narinfo", /\.narinfo$/], ["NAR", /^\/nar\//]] as const) {
    const figures = requests.figures(pattern);
    rows.push(...requestRows(kind, figures));
    if (figures.perFetch > REQUESTS_PER_FETCH_MAX) {
      wrongs.push(`${kind}: ${figures.perFetch} upstream requests for each fetch`);
    }
  }
  const evicts = minutes >= EVICTS_AFTER_MINUTES && limitMegabytes <= EVICTS_BELOW_MEGABYTES;
  if (evicts && cluster.evictedEntries === 0) {
    wrongs.push("no larder evicted anything: take a smaller --limit");
  }
  console.log("| Figure | |\n| --- | --- |");
  for (const row of rows) console.log(`| ${row.join(" | ")} |`);
  for (const wrong of wrongs) console.log(`WRONG: ${wrong}`);
  return wrongs.length === 0;
}

function requestRows(kind: string, figures: RequestFigures): [string, string | number][] {
  return [
    [`${kind}s`, figures.paths],
    [`upstream requests for each ${kind}`, figures.perPath.toFixed(3)],
    ["… for each fetch, of those that count", figures.perFetch.toFixed(3)],
    ["… that came twice for one fetch", figures.doubled],
    ["… for what was evicted", figures.again],
    ["… that are exempt", figures.exempt],
  ];
}

/** Else clients pin more than the limit allows, and nothing can be kept. */
async function unpinAll({ replicas }: Cluster, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await clock.pause(UNPIN_EVERY_MS);
    for (const { larder } of replicas) await unpinAt(larder?.url).catch(() => undefined);
  }
}

async function unpinAt(url = ""): Promise<void> {
  const signal = AbortSignal.timeout(UNPIN_EVERY_MS);
  const pins: readonly string[] = await (await fetch(`${url}/pins`, { signal })).json();
  for (const pin of pins) {
    const answer = await fetch(`${url}/pin/${pin}.narinfo`, { method: "DELETE", signal });
    await answer.body?.cancel();
  }
}

async function problemsAtTheEnd(cluster: Cluster): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const replica of cluster.replicas) {
    const code = await cluster.end(replica, "SIGTERM");
    if (code !== 0) problems.push(`a replica ended with status ${code}`);
  }
  const { status, out, err } = await runLarder(["fsck", "--verify-content", ...cluster.places]);
  if (status !== 0) problems.push(`fsck: ${out}${err}`);
  return problems;
}
