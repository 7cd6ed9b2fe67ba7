import type { Figure } from "./figure.ts";
import type { Result } from "./report.ts";
import { median } from "./rounds.ts";
import { LARDER } from "./server.ts";

/** A bench's result, for comparing it with another. */
export interface Median {
  readonly name: string;
  readonly unit: Figure["unit"];
  readonly value: number;
}

/** Allowed loss in percent. Figures in percent may lose as many points. */
export const WORSE_PERCENT_MAX = 5;

const MORE_IS_BETTER: ReadonlySet<Figure["unit"]> = new Set(["requests/s", "MB/s"]);

/** Larder's median of each figure. */
export function mediansOf(results: readonly Result[]): readonly Median[] {
  return results.map(({ figure: { name, unit }, values }) => {
    return { name, unit, value: median(values.get(LARDER) ?? []) };
  });
}

/** One bench of each program, in turn. */
export type Turn = readonly [before: readonly Median[], after: readonly Median[]];

export interface Comparison {
  readonly table: string;
  /** Figures that lose more than `WORSE_PERCENT_MAX`. */
  readonly worse: readonly string[];
}

/**
 * Each figure's median change over the turns, and that of each turn, which shows the noise. Other
 * work of the machine affects both sides of a turn.
 */
export function compare(names: readonly [string, string], turns: readonly Turn[]): Comparison {
  const head = ["figure", ...names, "worse by", "in each turn", ""];
  const rows = [head, head.map(() => "---")];
  const worse: string[] = [];
  for (const { name, unit } of turns[0]?.[0] ?? []) {
    const pairs = turns.map(([before, after]) => [valueOf(before, name), valueOf(after, name)]);
    const percents = pairs.map(([before = NaN, after = NaN]) => worseBy(unit, before, after));
    const percent = median(percents);
    // NaN does not prove that a figure is as good.
    const isWorse = !(percent <= WORSE_PERCENT_MAX);
    if (isWorse) worse.push(name);
    const shown = [0, 1].map((at) =>
      `${median(pairs.map((pair) => pair[at] ?? NaN)).toPrecision(4)} ${unit}`
    );
    const each = percents.map((one) => one.toFixed(1)).join(", ");
    rows.push([name, ...shown, `${percent.toFixed(1)} %`, each, isWorse ? "WORSE" : "as good"]);
  }
  return { table: rows.map((cells) => `| ${cells.join(" | ")} |\n`).join(""), worse };
}

function valueOf(medians: readonly Median[], name: string): number {
  return medians.find((median) => median.name === name)?.value ?? NaN;
}

/** Worsening in percent; negative if better. */
function worseBy(unit: Figure["unit"], before: number, after: number): number {
  if (unit === "%") return after - before;
  return 100 * (MORE_IS_BETTER.has(unit) ? before / after - 1 : after / before - 1);
}
