import { cpuShares } from "../cpu_times.ts";
import { table } from "./parts_table.ts";
import type { Latency, ServedFigures } from "./served.ts";

/** The most of 99 of 100 answers. */
const SCRAPE_P99_MAX_MS = 10;
const EVICTION_P99_MAX_MS = 20;

interface Row {
  readonly name: string;
  readonly latency: Latency;
  readonly p99MaxMs?: number;
}

/**
 * A Markdown table of the latencies, with targets. Below it stands each missed one, with where the
 * processor time goes.
 */
export function servedTable(
  { before, scrapes, during, evictedCount, evictionSeconds }: ServedFigures,
): string {
  const rate = Math.round(evictedCount / evictionSeconds).toLocaleString("en");
  const evicted = `${evictedCount.toLocaleString("en")} entries are evicted, ${rate} a second`;
  const rows: readonly Row[] = [
    { name: "nothing else happens", latency: before },
    {
      name: "scrapes of /metrics, nothing else happens",
      latency: scrapes,
      p99MaxMs: SCRAPE_P99_MAX_MS,
    },
    { name: evicted, latency: during, p99MaxMs: EVICTION_P99_MAX_MS },
  ];
  const lines = table([
    ["narinfo hits, 500 a second, a million entries", "median", "p99", "longest", "target", ""],
    ...rows.map(cellsOf),
  ]);
  const missed = rows.filter((row) => !isReached(row)).map(({ name, latency: { cpu } }) =>
    `* Missed: ${name}. Processor time of larder: ${cpuShares(cpu)}.`
  );
  return missed.length === 0 ? lines : `${lines}\n${missed.join("\n")}\n`;
}

function cellsOf(row: Row): readonly string[] {
  const { name, latency: { medianMs, p99Ms, longestMs }, p99MaxMs } = row;
  return [
    name,
    ...[medianMs, p99Ms, longestMs].map((ms) => `${ms.toFixed(2)} ms`),
    p99MaxMs === undefined ? "–" : `p99 ≤ ${p99MaxMs} ms`,
    p99MaxMs === undefined ? "" : isReached(row) ? "reached" : "MISSED",
  ];
}

function isReached({ latency: { p99Ms }, p99MaxMs = Infinity }: Row): boolean {
  return p99Ms <= p99MaxMs;
}
