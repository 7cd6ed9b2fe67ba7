// Runs three real larders on one storage, harms them and their neighbours at random, and checks
// every answer byte for byte. See scripts/chaos/options.ts for the options.
import { messageOf } from "../src/base/failure.ts";
import { pause } from "../src/base/pause.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { runLarder } from "../tests/support/run_larder.ts";
import { type ChaosOptions, readOptions, USAGE } from "./chaos/options.ts";
import { Cluster } from "./chaos/cluster.ts";
import { harm } from "./chaos/faults.ts";
import { GrowingWorld } from "./chaos/growing_world.ts";
import { UpstreamRequests } from "./chaos/upstream_requests.ts";
import { pullWithNix } from "./chaos/nix_pulls.ts";
import { Client } from "./soak/client.ts";
import { Dice } from "./soak/dice.ts";
import { Tally } from "./soak/tally.ts";

const MINUTE_MS = 60_000;
const REQUESTS_PER_PATH_MAX = 1.05;
/** The upstream is a little away. */
const UPSTREAM_MS = 20;
const CANNOT_RUN_STATUS = 2;

const options = optionsOrExit();
Deno.exit(await chaos(options) ? 0 : 1);

/** Resolves to true if there were no problems. */
async function chaos({ minutes, clients, seed }: ChaosOptions): Promise<boolean> {
  console.error(`chaos: ${clients} clients, ${minutes} min, --seed ${seed}`);
  const startedAt = performance.now();
  const isOver = () => performance.now() - startedAt > minutes * MINUTE_MS;
  await using upstream = await fakeUpstream({ stored: true });
  const world = new GrowingWorld(upstream, new Dice(seed, "world"));
  await using cluster = await Cluster.start(upstream);
  const requests = new UpstreamRequests();
  upstream.onRequest = async ({ path, method }) => {
    // Clients ask for absent paths, too.
    if (method === "GET" && world.has(path)) requests.note(path, cluster.isShared);
    await pause(UPSTREAM_MS);
    return undefined;
  };
  const tally = new Tally();
  using _growing = await world.grow(isOver);
  const port = (dice: Dice) => () => dice.pick(cluster.replicas).larder?.port;
  const actors = Array.from({ length: clients }, (_, at) => {
    const dice = new Dice(seed, `client ${at}`);
    return new Client({ dice, tally, world, port: port(dice) });
  });
  const acting = actors.map(async (actor) => {
    while (!isOver()) await actor.act();
  });
  const [faults] = await Promise.all([
    harm(cluster, new Dice(seed, "faults"), isOver),
    pullWithNix({ world, upstream, cluster, tally, isOver, dice: new Dice(seed, "nix") }),
    ...acting,
  ]);
  const wrongs = [...tally.wrongs, ...await problemsAtTheEnd(cluster)];
  const logged = [...cluster.warnings].map(([msg, count]) => [`log: ${msg}`, count] as const);
  const rows: (readonly [string, string | number])[] = [
    ["database", cluster.postgres === undefined ? "SQLite" : "PostgreSQL"],
    ["wrong answers", tally.wrongCount],
    ...faults,
    ...[...tally.counts].toSorted(),
    ...logged,
  ];
  for (const [kind, pattern] of [["narinfo", /\.narinfo$/], ["NAR", /^\/nar\//]] as const) {
    const { paths, perPath, perSharedPath } = requests.figures(pattern);
    rows.push([`${kind}s`, paths], [`upstream requests for each ${kind}`, perPath.toFixed(3)]);
    rows.push([`the same while locks and database work`, perSharedPath.toFixed(3)]);
    if (perSharedPath > REQUESTS_PER_PATH_MAX) {
      wrongs.push(`${kind}: ${perSharedPath} upstream requests for each`);
    }
  }
  console.log("| Figure | |\n| --- | --- |");
  for (const row of rows) console.log(`| ${row.join(" | ")} |`);
  for (const wrong of wrongs) console.log(`WRONG: ${wrong}`);
  return wrongs.length === 0;
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

function optionsOrExit(): ChaosOptions {
  try {
    return readOptions(Deno.args);
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${USAGE}`);
    Deno.exit(CANNOT_RUN_STATUS);
  }
}
