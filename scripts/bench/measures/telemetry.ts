import { checkNarinfos } from "../check.ts";
import type { Bench, Measure } from "../figure.ts";
import { median } from "../rounds.ts";
import type { Server } from "../server.ts";
import { runLoad } from "../wrk.ts";

const NARINFOS_COUNT = 3_000;
const SEED = 2_000;

/** Turns of a round: the differences are small, and what else the machine does is not. */
const TURNS = 5;

const figure = (what: string, limit: number) => ({
  name: `narinfo hits, 16 connections: cost of ${what}`,
  unit: "%" as const,
  target: { kind: "below" as const, limit },
});

/**
 * What telemetry costs a narinfo hit: larders with and without it, in turns. Counted is processor
 * time a request, which bounds their number, and moves less with what else the machine does.
 */
export const TELEMETRY_COST: Measure = {
  figures: [figure("metrics", 3), figure("metrics and 1 % of traces", 15)],
  async prepare(bench) {
    const { corpus, workplace, variants } = bench;
    const objects = corpus.putNarinfos({ count: NARINFOS_COUNT, seed: SEED });
    const paths = objects.map((object) => object.narinfoPath);
    const launched: Server[] = [];
    for (const name of ["plain", "metrics", "traces"] as const) {
      const server = await variants[name].launch(workplace.makeFolder(`larder-${name}`));
      await checkNarinfos(server, objects, corpus.publicKey);
      await load(bench, server, paths);
      launched.push(server);
    }
    return async ({ name }, round) => {
      // The others have no telemetry of ours.
      if (name !== "larder") return [];
      const ratios: number[][] = [[], []];
      for (let turn = 0; turn < TURNS; turn++) {
        const costs = await inTurns(bench, launched, paths, round + turn);
        const [plain = NaN, metrics = NaN, traces = NaN] = costs;
        ratios[0]?.push(metrics / plain);
        ratios[1]?.push(traces / plain);
      }
      return ratios.map((values) => (median(values) - 1) * 100);
    };
  },
};

/** Processor time a request of each, in seconds; another one is first each time. */
async function inTurns(
  bench: Bench,
  servers: readonly Server[],
  paths: readonly string[],
  first: number,
): Promise<readonly number[]> {
  const costs: number[] = [];
  for (let step = 0; step < servers.length; step++) {
    const at = (first + step) % servers.length;
    const server = servers[at];
    if (server !== undefined) costs[at] = await load(bench, server, paths);
  }
  return costs;
}

async function load(bench: Bench, server: Server, paths: readonly string[]): Promise<number> {
  const { workplace, seconds } = bench;
  const before = server.cpuSeconds();
  const asked = { paths, connections: 16, seconds, status: 200 } as const;
  const { count } = await runLoad(workplace, server, asked);
  return (server.cpuSeconds() - before) / count;
}
