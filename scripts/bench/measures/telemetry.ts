import { checkNarinfos } from "../check.ts";
import type { Measure } from "../figure.ts";
import { LARDER, type Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";
import { runLoad } from "../wrk.ts";

const NARINFOS_COUNT = 3_000;
const SEED = 2_000;

/** Processes of each kind. */
const SETS = 3;

/** Loads of each process, in turns with the other kinds. */
const TURNS = 2;
const LOAD_SECONDS = 1;

const KINDS = ["plain", "metrics", "traces"] as const;
type Kind = typeof KINDS[number];

const figure = (what: string, limit: number) => ({
  name: `narinfo hits, 16 connections: cost of ${what}`,
  unit: "%" as const,
  target: { kind: "below" as const, limit },
});

/**
 * The cost of telemetry for a narinfo hit, in processor time, which depends least on other work.
 * Two equal processes differ by a fifth for their whole life, probably by memory layout. So it
 * starts several processes of each kind, and compares the best of each.
 */
export const TELEMETRY_COST: Measure = {
  figures: [figure("metrics", 3), figure("metrics and 1 % of traces", 15)],
  launches: "first set",
  async prepare({ corpus, workplace, variants, seconds }) {
    const objects = corpus.putNarinfos({ count: NARINFOS_COUNT, seed: SEED });
    const paths = objects.map((object) => object.narinfoPath);
    const loadOf = (server: Server, seconds: number) => costOf(workplace, server, paths, seconds);
    const best = new Map<Kind, number>();
    for (let set = 0; set < SETS; set++) {
      const launched: (readonly [Kind, Server])[] = [];
      for (const kind of KINDS) {
        const server = await variants[kind].launch(workplace.makeFolder(`larder-${kind}-${set}`));
        await checkNarinfos(server, objects, corpus.publicKey);
        // V8 has optimised the code then.
        await loadOf(server, 2 * seconds);
        launched.push([kind, server]);
      }
      for (let turn = 0; turn < TURNS; turn++) {
        for (const [kind, server] of launched) {
          best.set(kind, Math.min(await loadOf(server, LOAD_SECONDS), best.get(kind) ?? Infinity));
        }
      }
      for (const [, server] of launched) await server[Symbol.asyncDispose]();
    }
    const more = (kind: Kind) => ((best.get(kind) ?? NaN) / (best.get("plain") ?? NaN) - 1) * 100;
    // The other servers have no such telemetry.
    return async ({ name }) => name === LARDER ? [more("metrics"), more("traces")] : [];
  },
};

/** Processor time for each request, in microseconds. */
async function costOf(
  workplace: Workplace,
  server: Server,
  paths: readonly string[],
  seconds: number,
): Promise<number> {
  const load = { paths, connections: 16, seconds, status: 200 } as const;
  return (await runLoad(workplace, server, load)).cpuUs;
}
