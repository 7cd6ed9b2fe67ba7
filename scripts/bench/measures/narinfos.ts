import { checkAbsent, checkKept, checkNarinfos } from "../check.ts";
import { absentPaths } from "../corpus.ts";
import { MAIN_THREAD } from "../cpu_times.ts";
import { type Bench, cpuFigure, type Measure, ofProxy, type Run } from "../figure.ts";
import { LARDER, type Server } from "../server.ts";
import { runLoad } from "../wrk.ts";

/** The closure of a desktop system has as many. */
const NARINFOS_COUNT = 3_000;
const COLD_CONNECTIONS = 16;

/** Differs from the seeds of the cold sets, which are the rounds' numbers. */
const HITS_SEED = 1_000;

/** The bench reads one in so many answers of a cold set; wrk checks the status of all. */
const CHECKED_STEP = 10;

/** More than the 128 sockets that Deno serves in a turn of its event loop. */
const BUSY_CONNECTIONS = 400;

/** Hits of narinfos. */
export function narinfoHits(connections: number): Measure {
  const name = hitsName(connections);
  const target = ofProxy(connections === 1 ? 0.85 : 0.8);
  return {
    figures: [{ name, unit: "requests/s", target }, cpuFigure(name, "µs")],
    prepare: (bench) => prepareHits(bench, connections),
  };
}

const BUSY_NAME = hitsName(BUSY_CONNECTIONS);

/** Hits of so many clients that they must take turns. */
export const BUSY_CLIENTS: Measure = {
  figures: [
    { name: BUSY_NAME, unit: "requests/s", target: ofProxy(0.8) },
    cpuFigure(BUSY_NAME, "µs"),
    { name: `${BUSY_NAME}: p99`, unit: "ms", target: { kind: "none" } },
  ],
  prepare: (bench) => prepareHits(bench, BUSY_CONNECTIONS),
};

function hitsName(connections: number): string {
  const load = connections === 1 ? "1 connection" : `${connections} connections`;
  return `narinfo hits, ${NARINFOS_COUNT} different, ${load}`;
}

async function prepareHits(bench: Bench, connections: number): Promise<Run> {
  const { corpus, servers } = bench;
  const objects = corpus.putNarinfos({ count: NARINFOS_COUNT, seed: HITS_SEED });
  const paths = objects.map((object) => object.narinfoPath);
  for (const server of servers) {
    await checkNarinfos(server, objects, corpus.publicKey);
    await checkKept(server, paths);
  }
  return await loaded(bench, { paths, connections, status: 200 });
}

const KNOWN_MISSES_NAME = `known misses, ${NARINFOS_COUNT} different, 16 connections`;

/** Requests for narinfos that are known to be absent. */
export const KNOWN_MISSES: Measure = {
  figures: [
    { name: KNOWN_MISSES_NAME, unit: "requests/s", target: ofProxy(0.85) },
    cpuFigure(KNOWN_MISSES_NAME, "µs"),
  ],
  async prepare(bench) {
    const paths = absentPaths({ count: NARINFOS_COUNT, seed: 1 });
    for (const server of bench.servers) {
      await checkAbsent(server, paths);
      await checkKept(server, paths);
    }
    return await loaded(bench, { paths, connections: 16, status: 404 });
  },
};

const COLD_NAME = `cold narinfos, ${NARINFOS_COUNT} different, ${COLD_CONNECTIONS} connections`;

/** Misses: narinfos from the upstream, new ones in every round. */
export const COLD_NARINFOS: Measure = {
  figures: [
    { name: COLD_NAME, unit: "requests/s", target: ofProxy(0.5) },
    cpuFigure(COLD_NAME, "µs"),
    {
      name: `${COLD_NAME}: CPU each of the thread that answers`,
      unit: "µs",
      target: { kind: "below", limit: 250 },
    },
  ],
  async prepare({ workplace, corpus, servers, rounds }) {
    const put = (seed: number) => corpus.putNarinfos({ count: NARINFOS_COUNT, seed });
    const sets = Array.from({ length: rounds + 1 }, (_, round) => put(round));
    const run: Run = async (server, round) => {
      const objects = sets[round] ?? [];
      const before = mainSeconds(server);
      const { perSecond, cpuUs } = await runLoad(workplace, server, {
        paths: objects.map((object) => object.narinfoPath),
        connections: COLD_CONNECTIONS,
        seconds: "once",
        status: 200,
      });
      const mainUs = 1_000_000 * (mainSeconds(server) - before) / objects.length;
      const some = objects.filter((_, at) => at % CHECKED_STEP === 0);
      await checkNarinfos(server, some, corpus.publicKey);
      // The main process of nginx answers nothing.
      return server.name === LARDER ? [perSecond, cpuUs, mainUs] : [perSecond, cpuUs];
    };
    // The set behind the last round's is for warming up.
    for (const server of servers) await run(server, rounds);
    return run;
  },
};

function mainSeconds(server: Server): number {
  return server.cpuTimes().threads.get(MAIN_THREAD) ?? NaN;
}

interface WarmLoad {
  readonly paths: readonly string[];
  readonly connections: number;
  readonly status: 200 | 404;
}

/** Loads every server, which warms it up, and returns the run to measure. */
export async function loaded(bench: Bench, load: WarmLoad): Promise<Run> {
  const { workplace, servers, seconds, warmUp } = bench;
  for (const server of servers) {
    await runLoad(workplace, server, { ...load, seconds: warmUp });
  }
  return async (server) => {
    const { perSecond, cpuUs, lateMs } = await runLoad(workplace, server, { ...load, seconds });
    return [perSecond, cpuUs, lateMs];
  };
}
