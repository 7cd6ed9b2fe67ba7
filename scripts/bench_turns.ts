// Runs the bench with two larders in turns, and fails if the second is worse. Each is a Deno
// version that runs these sources, or the path of an executable, such as a script that starts older
// sources. Arguments beside `--turns` and the two go to each bench: `--quick`, `--only TEXT`.
import { parseArgs } from "node:util";
import { compare, type Median, type Turn } from "./bench/compare.ts";
import { REPOSITORY } from "./bench/workplace.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE =
  "scripts/deno task bench-turns 2.6.8|PATH newest|PATH [--turns 3] [--quick] [--only TEXT]";

interface TurnsOptions {
  readonly before: string;
  readonly after: string;
  readonly turnsCount: number;
  /** Arguments of each bench. */
  readonly words: readonly string[];
}

const { before, after, turnsCount, words } = optionsOrExit(readOptions, USAGE);

const turns: Turn[] = [];
for (let turn = 0; turn < turnsCount; turn++) {
  // The first one changes in each turn.
  if (turn % 2 === 0) turns.push([await benchOf(before), await benchOf(after)]);
  else {
    const second = await benchOf(after);
    turns.push([await benchOf(before), second]);
  }
}
const { table, worse } = compare([before, after], turns);
console.log(table);
Deno.exit(worse.length === 0 ? 0 : 1);

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
function readOptions(args: readonly string[]): TurnsOptions {
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
  const words = [
    ...(values.quick ? ["--quick"] : []),
    ...(values.only === undefined ? [] : ["--only", values.only]),
  ];
  return { before, after, turnsCount, words };
}
