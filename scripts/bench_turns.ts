// Runs the bench with two larders in turns, and fails if the second is worse. Each is a Deno
// version that runs these sources, or the path of an executable, such as a script that starts older
// sources. Arguments beside `--turns` and the two go to each bench: `--quick`, `--only TEXT`.
import { parseArgs } from "node:util";
import { REPOSITORY } from "./bench/servers.ts";
import { median } from "./median.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE =
  "scripts/deno task bench-turns 2.6.8|PATH newest|PATH [--turns 3] [--quick] [--only TEXT]";

/** Allowed loss in percent. */
const WORSE_PERCENT_MAX = 5;

/** A figure's median, as the bench writes it. */
interface Median {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
}

const { before, after, turnsCount, words } = optionsOrExit(readOptions, USAGE);
const turns: (readonly [readonly Median[], readonly Median[]])[] = [];
while (turns.length < turnsCount) {
  // The first one changes in each turn.
  const isSwapped = turns.length % 2 === 1;
  const [one, other] = isSwapped ? [after, before] : [before, after];
  const results = [await benchOf(one), await benchOf(other)] as const;
  turns.push(isSwapped ? [results[1], results[0]] : results);
}
console.log(`| figure | ${before} | ${after} | worse by | in each turn | |`);
console.log("| --- | --- | --- | --- | --- | --- |");
let isWorse = false;
for (const { name, unit } of turns[0]?.[0] ?? []) {
  const pairs = turns.map((pair) =>
    pair.map((medians) => medians.find((one) => one.name === name)?.value ?? NaN)
  );
  // A rate is worse if it is less. Other work of the machine affects both sides of a turn.
  const percents = pairs.map(([one = NaN, other = NaN]) =>
    100 * (unit.endsWith("/s") ? one / other - 1 : other / one - 1)
  );
  const percent = median(percents);
  // NaN does not prove that a figure is as good.
  const isRowWorse = !(percent <= WORSE_PERCENT_MAX);
  isWorse ||= isRowWorse;
  const shown = [0, 1].map((at) => {
    return `${median(pairs.map((pair) => pair[at] ?? NaN)).toPrecision(4)} ${unit}`;
  });
  const each = percents.map((one) => one.toFixed(1)).join(", ");
  const verdict = isRowWorse ? "WORSE" : "as good";
  console.log(`| ${[name, ...shown, `${percent.toFixed(1)} %`, each, verdict].join(" | ")} |`);
}
Deno.exit(isWorse ? 1 : 0);

/** One bench, in its own process. A slash tells an executable from a Deno version. */
async function benchOf(larder: string): Promise<readonly Median[]> {
  const isPath = larder.includes("/");
  const runs = isPath ? ["--executable", larder] : [];
  const json = Deno.makeTempFileSync();
  try {
    const { success } = await new Deno.Command(`${REPOSITORY}scripts/deno`, {
      args: ["run", "-A", `${REPOSITORY}scripts/bench.ts`, "--json", json, ...runs, ...words],
      env: isPath ? {} : { USE_DENO: larder },
      stdout: "null",
    }).spawn().status;
    if (!success) throw new Error(`Cannot bench ${larder}`);
    return JSON.parse(Deno.readTextFileSync(json));
  } finally {
    Deno.removeSync(json);
  }
}

/** Throws an Error that explains invalid arguments. */
function readOptions(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      turns: { type: "string", default: "3" },
      quick: { type: "boolean" },
      only: { type: "string" },
    },
  });
  const [before, after] = positionals;
  if (before === undefined || after === undefined || positionals.length > 2) {
    throw new Error(`${positionals.length} larders are given: expected two`);
  }
  const turnsCount = Number(values.turns);
  if (!(turnsCount >= 1)) throw new Error(`--turns is "${values.turns}": expected 1 or more`);
  const only = values.only === undefined ? [] : ["--only", values.only];
  return { before, after, turnsCount, words: [...values.quick ? ["--quick"] : [], ...only] };
}
