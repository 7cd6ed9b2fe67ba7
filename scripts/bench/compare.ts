import type { Figure } from "./figure.ts";
import type { Result } from "./report.ts";
import { median } from "./rounds.ts";

/** What a bench leaves for a comparison with another. */
export interface Median {
  readonly name: string;
  readonly unit: Figure["unit"];
  readonly value: number;
}

/** By how many percent a figure may be worse: also of what is in percent, by as many points. */
export const WORSE_PERCENT_MAX = 5;

const MORE_IS_BETTER: ReadonlySet<Figure["unit"]> = new Set(["requests/s", "MB/s"]);

/** Larder's median of each figure. */
export function mediansOf(results: readonly Result[]): readonly Median[] {
  return results.map(({ figure: { name, unit }, values }) => {
    return { name, unit, value: median(values.larder) };
  });
}

/** A bench of each of two programs, run one after the other. */
export type Turn = readonly [before: readonly Median[], after: readonly Median[]];

export interface Comparison {
  readonly table: string;
  /** The figures that are worse by more than `WORSE_PERCENT_MAX`. */
  readonly worse: readonly string[];
}

/** Each figure's median change over the turns: what else the machine does in one meets both. */
export function compare(names: readonly [string, string], turns: readonly Turn[]): Comparison {
  const head = ["figure", ...names, "worse by", ""];
  const rows = [head, head.map(() => "---")];
  const worse: string[] = [];
  for (const { name, unit } of turns[0]?.[0] ?? []) {
    const pairs = turns.map(([before, after]) => [valueOf(before, name), valueOf(after, name)]);
    const percent = median(
      pairs.map(([before = NaN, after = NaN]) => worseBy(unit, before, after)),
    );
    // What is not a number has not been shown to be as good.
    const isWorse = !(percent <= WORSE_PERCENT_MAX);
    if (isWorse) worse.push(name);
    const shown = [0, 1].map((at) =>
      `${median(pairs.map((pair) => pair[at] ?? NaN)).toPrecision(4)} ${unit}`
    );
    rows.push([name, ...shown, `${percent.toFixed(1)} %`, isWorse ? "WORSE" : "as good"]);
  }
  return { table: rows.map((cells) => `| ${cells.join(" | ")} |\n`).join(""), worse };
}

function valueOf(medians: readonly Median[], name: string): number {
  return medians.find((median) => median.name === name)?.value ?? NaN;
}

/** In percent; less than 0 where it is better. */
function worseBy(unit: Figure["unit"], before: number, after: number): number {
  if (unit === "%") return after - before;
  return 100 * (MORE_IS_BETTER.has(unit) ? before / after - 1 : after / before - 1);
}
