import { cpuShares, type CpuTimes } from "./cpu_times.ts";
import type { Figure } from "./figure.ts";
import { median, type Values } from "./rounds.ts";
import { LARDER, PROXY } from "./server.ts";

export interface Result {
  readonly figure: Figure;
  readonly values: Values;
  /** CPU time of larder, for all figures of one measure together. */
  readonly cpu: CpuTimes;
}

interface Judgement {
  /** Larder's ratio to nginx proxy_cache: the median of the rounds' ratios. */
  readonly ratio: number;
  readonly target: string;
  readonly reached: boolean;
}

/** Compares the rounds one by one, as other work of the machine affects both sides of a round. */
function judge({ figure, values }: Result): Judgement {
  const larder = values.get(LARDER) ?? [];
  const pairsWith = (name: string) =>
    larder.map((own, round) => [own, values.get(name)?.[round] ?? NaN] as const);
  const ratioTo = (name: string) => median(pairsWith(name).map(([own, other]) => own / other));
  const pairs = pairsWith(PROXY);
  const ratio = ratioTo(PROXY);
  const own = median(larder);
  const { target, unit } = figure;
  switch (target.kind) {
    case "ratio": {
      const goals = Object.entries(target.atLeast).filter(([name]) => values.has(name));
      const text = goals.map(([name, atLeast]) => `≥ ${atLeast} of ${name}`).join(", ");
      const reached = goals.every(([name, atLeast]) => ratioTo(name) >= atLeast);
      return { ratio, target: text || "–", reached };
    }
    case "behind": {
      const behind = median(pairs.map(([larder, proxy]) => larder - proxy));
      const text = `≤ ${target.atMost} ${unit} more (${signed(behind)})`;
      return { ratio, target: text, reached: behind <= target.atMost };
    }
    case "below":
      return { ratio, target: `< ${target.limit} ${unit}`, reached: own < target.limit };
    case "none":
      return { ratio, target: "–", reached: true };
  }
}

/** The results as a Markdown table under the facts of the run. */
export function report(results: readonly Result[], facts: readonly string[]): string {
  const names = [...new Set(results.flatMap(({ values }) => [...values.keys()]))]
    .sort((a, b) => Number(b === LARDER) - Number(a === LARDER));
  const head = ["figure", ...names, `ratio to ${PROXY}`, "target", ""];
  const rows = results.map((result) => {
    const { figure, values } = result;
    const { ratio, target, reached } = judge(result);
    return [
      figure.name,
      ...names.map((name) => shown(values.get(name) ?? [], figure)),
      Number.isNaN(ratio) ? "–" : ratio.toFixed(2),
      target,
      target === "–" ? "" : reached ? "reached" : "MISSED",
    ];
  });
  const lines = [head, head.map((_, at) => at === 0 ? "---" : "---:"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`);
  const missed = missedLines(results);
  const parts = [facts.map((fact) => `* ${fact}`), lines, ...missed.length > 0 ? [missed] : []];
  return parts.map((part) => part.join("\n") + "\n").join("\n");
}

/** The median, with the range of the rounds in brackets. */
function shown(values: readonly number[], { unit }: Figure): string {
  if (values.length === 0) return "–";
  const text = (value: number) => value.toFixed(DIGITS[unit]);
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)];
  const spread = text(low) === text(high) ? "" : ` (${text(low)}–${text(high)})`;
  return `${text(middle)} ${unit}${spread}`;
}

const DIGITS: Readonly<Record<Figure["unit"], number>> = {
  "requests/s": 0,
  "MB/s": 0,
  "µs": 1,
  "ms": 1,
  "s": 3,
  "MB": 0,
  "%": 1,
};

function signed(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(1)}`;
}

/** A line for each figure that misses its target, with where the time or the memory goes. */
function missedLines(results: readonly Result[]): readonly string[] {
  return results.filter((result) => !judge(result).reached).map(({ figure, cpu }) => {
    const parts = (figure.parts ?? []).map((name) => partText(results, name));
    // The processor says nothing about memory.
    const shares = figure.unit === "MB" ? "" : cpuShares(cpu);
    const reasons = [
      ...parts.length > 0 ? [`Its parts: ${parts.join("; ")}.`] : [],
      ...shares !== "" ? [`Processor time of larder: ${shares}.`] : [],
    ];
    const why = reasons.length > 0 ? reasons : ["larder took no processor time."];
    return `* Missed: ${figure.name}. ${why.join(" ")}`;
  });
}

function partText(results: readonly Result[], name: string): string {
  const part = results.find(({ figure }) => figure.name === name);
  return `${name}, ${part === undefined ? "–" : shown(part.values.get(LARDER) ?? [], part.figure)}`;
}
