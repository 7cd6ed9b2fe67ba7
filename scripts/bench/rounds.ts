import type { Bench, Measure, Run } from "./figure.ts";
import { SERVER_NAMES, type ServerName } from "./server.ts";

/** A figure's values, one for each round. */
export type Values = Readonly<Record<ServerName, readonly number[]>>;

/**
 * Runs a measure: every round runs each server once, in rotating order, so that other work of the
 * machine affects all. Returns the values of each figure.
 */
export async function runMeasure(bench: Bench, measure: Measure): Promise<readonly Values[]> {
  const run = await measure.prepare(bench);
  const values = measure.figures.map(() => emptyValues());
  for (let round = 0; round < bench.rounds; round++) await runRound(bench, run, round, values);
  return values;
}

async function runRound(
  { servers }: Bench,
  run: Run,
  round: number,
  values: readonly Record<ServerName, number[]>[],
): Promise<void> {
  const first = round % servers.length;
  for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
    const measured = await run(server, round);
    measured.forEach((value, index) => values[index]?.[server.name].push(value));
  }
}

function emptyValues(): Record<ServerName, number[]> {
  const entries = SERVER_NAMES.map((name) => [name, [] as number[]]);
  return Object.fromEntries(entries) as Record<ServerName, number[]>;
}

/** The median. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? NaN) + (high ?? NaN)) / 2;
}
