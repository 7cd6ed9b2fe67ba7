import { checkNarinfos } from "../check.ts";
import type { Bench, Measure } from "../figure.ts";
import type { Server } from "../server.ts";
import { runLoad } from "../wrk.ts";

const NARINFOS_COUNT = 3_000;
const SEED = 2_000;

/**
 * Of each kind. Two processes that do the same differ by a fifth for as long as they live (in how
 * their memory came to lie, it seems): the best of each kind is told from the best of another.
 */
const PROCESSES = 3;

const KINDS = ["plain", "metrics", "traces"] as const;
type Kind = typeof KINDS[number];

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
    const launched: (readonly [Kind, Server])[] = [];
    for (let count = 0; count < PROCESSES; count++) {
      for (const kind of KINDS) {
        const folder = workplace.makeFolder(`larder-${kind}-${count}`);
        const server = await variants[kind].launch(folder);
        await checkNarinfos(server, objects, corpus.publicKey);
        await load(bench, server, paths);
        launched.push([kind, server]);
      }
    }
    // Of all rounds so far: what else the machine does only ever adds.
    const best = new Map<Kind, number>();
    return async ({ name }) => {
      // The others have no telemetry of ours.
      if (name !== "larder") return [];
      for (const [kind, server] of launched) {
        const cost = await load(bench, server, paths);
        best.set(kind, Math.min(cost, best.get(kind) ?? Infinity));
      }
      const plain = best.get("plain") ?? NaN;
      return (["metrics", "traces"] as const).map((kind) => {
        return ((best.get(kind) ?? NaN) / plain - 1) * 100;
      });
    };
  },
};

/** Processor time a request, in seconds. */
async function load(bench: Bench, server: Server, paths: readonly string[]): Promise<number> {
  const { workplace, seconds } = bench;
  const before = server.cpuSeconds();
  const asked = { paths, connections: 16, seconds, status: 200 } as const;
  const { count } = await runLoad(workplace, server, asked);
  return (server.cpuSeconds() - before) / count;
}
