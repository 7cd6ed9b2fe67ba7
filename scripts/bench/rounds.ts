import { cpuBetween, cpuSum, type CpuTimes } from "./cpu_times.ts";
import type { Bench, Measure, Run } from "./figure.ts";
import { LARDER } from "./server.ts";
import { WatchedLaunches } from "./watched_launches.ts";

/** A figure's values by server, one for each round. */
export type Values = ReadonlyMap<string, readonly number[]>;

/** Result of a measure. */
export interface Measured {
  /** Values of each figure. */
  readonly values: readonly Values[];
  /** CPU time of larder in all rounds, or of the larders that the measure launched. */
  readonly cpu: CpuTimes;
}

/**
 * Runs a measure: every round runs each server once, in rotating order, so that other work of the
 * machine affects all.
 */
export async function runMeasure(bench: Bench, measure: Measure): Promise<Measured> {
  const launched = new WatchedLaunches();
  const run = await measure.prepare(measure.launches ? watched(bench, launched) : bench);
  const values = measure.figures.map(() => new Map<string, number[]>());
  const larder = bench.servers.find(({ name }) => name === LARDER);
  const times: CpuTimes[] = [];
  const timed: Run = async (server, round) => {
    const before = server.cpuTimes();
    const measured = await run(server, round);
    if (server === larder && !measure.launches) times.push(cpuBetween(before, server.cpuTimes()));
    return measured;
  };
  for (let round = 0; round < bench.rounds; round++) await runRound(bench, timed, round, values);
  return { values, cpu: cpuSum([...times, launched.cpuTimes()]) };
}

/** The bench, with a watch over the larders that it launches. */
function watched(bench: Bench, launched: WatchedLaunches): Bench {
  const { plain, metrics, traces, behindNginx } = bench.variants;
  return {
    ...bench,
    launchers: bench.launchers.map((launcher) =>
      launcher.name === LARDER ? launched.watch(launcher) : launcher
    ),
    variants: {
      plain: launched.watch(plain),
      metrics: launched.watch(metrics),
      traces: launched.watch(traces),
      behindNginx: launched.watch(behindNginx),
    },
  };
}

async function runRound(
  { servers }: Bench,
  run: Run,
  round: number,
  values: readonly Map<string, number[]>[],
): Promise<void> {
  const first = round % servers.length;
  for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
    const measured = await run(server, round);
    measured.forEach((value, index) => append(values[index], server.name, [value]));
  }
}

/** The values of several sets of processes together. */
export function joined(sets: readonly Values[]): Values {
  const all = new Map<string, number[]>();
  for (const set of sets) for (const [name, values] of set) append(all, name, values);
  return all;
}

function append(to: Map<string, number[]> | undefined, name: string, values: readonly number[]) {
  to?.set(name, [...to.get(name) ?? [], ...values]);
}

/** The median. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? NaN) + (high ?? NaN)) / 2;
}
