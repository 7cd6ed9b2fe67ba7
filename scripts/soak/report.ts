import type { Monitor, Sample } from "./monitor.ts";
import type { Tally } from "./tally.ts";

/** Allowed growth of the last third over the second: the garbage collector's swing. */
const GROWTH_MAX = 1.1;
/** Smaller differences of memory are noise. */
const GROWTH_BYTES_MIN = 16 << 20;
const MIB = 1 << 20;

export interface Outcome {
  readonly tally: Tally;
  readonly monitor: Monitor;
  readonly limitBytes: number;
  /** The faults of larders and of what they share. With any, memory belongs to many processes. */
  readonly harms: ReadonlyMap<string, number>;
  /** The problems found at the end. */
  readonly endProblems: readonly string[];
}

export interface Report {
  readonly text: string;
  /** All problems. */
  readonly wrongs: readonly string[];
}

/** The table of a soak. The last sample is of an idle larder. */
export function report(outcome: Outcome): Report {
  const { tally, monitor: { samples, errors }, limitBytes, harms } = outcome;
  const [first, quiet] = [samples.at(0), samples.at(-1)];
  if (first === undefined || quiet === undefined) throw new Error("Cannot report: no samples");
  const thirds = [0, 1, 2].map((third) => meanResident(samples, third));
  const [, second = 0, last = 0] = thirds;
  const most = (of: (sample: Sample) => number) => Math.max(...samples.map(of));
  const diskMost = most(({ diskBytes }) => diskBytes);
  const wrongs = [...tally.wrongs, ...outcome.endProblems];
  if (tally.wrongCount > tally.wrongs.length) wrongs.push(`${tally.wrongCount} wrongs in all`);
  if (diskMost > limitBytes) wrongs.push(`${diskMost} bytes on disk, at most ${limitBytes}`);
  const isGrowing = last > second * GROWTH_MAX && last - second > GROWTH_BYTES_MIN;
  if (harms.size === 0 && isGrowing) {
    wrongs.push(`memory grows: ${mib(second)} in the second third, ${mib(last)} in the last`);
  }
  if (quiet.deleted > 0) wrongs.push(`${quiet.deleted} files without a name are open at the end`);
  const rows = [
    ["wrong answers", String(tally.wrongCount)],
    ["answers", String([...tally.counts.values()].reduce((sum, count) => sum + count, 0))],
    ["bytes checked", mib(tally.answeredBytes)],
    [
      "memory: start, most, end",
      [first.residentBytes, most((one) => one.residentBytes), quiet.residentBytes].map(mib).join(
        ", ",
      ),
    ],
    ["memory: mean of each third", thirds.map(mib).join(", ")],
    [
      "handles: start, most, end",
      [first.handles, most(({ handles }) => handles), quiet.handles].join(", "),
    ],
    ["open files without a name: end", String(quiet.deleted)],
    ["disk: most, limit", [diskMost, limitBytes].map(mib).join(", ")],
    ...[...harms].map(([what, count]) => [what, String(count)]),
    ...[...tally.counts].toSorted().map(([what, count]) => [what, String(count)]),
    ...[...errors].map(([msg, { count, example }]) => [
      `log: ${msg}`,
      `${count}, such as ${JSON.stringify(example)}`,
    ]),
  ];
  const text = ["| Figure | |", "| --- | --- |", ...rows.map((row) => `| ${row.join(" | ")} |`)];
  return { text: text.join("\n"), wrongs };
}

function meanResident(samples: readonly Sample[], third: number): number {
  const size = Math.ceil(samples.length / 3);
  const part = samples.slice(third * size, (third + 1) * size);
  return part.reduce((sum, { residentBytes }) => sum + residentBytes, 0) / Math.max(1, part.length);
}

export function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}
