// Measures larder beside nginx as a caching proxy, and prints a table of Markdown. All run on one
// machine in one run.
import { parseArgs } from "node:util";
import { Corpus } from "./bench/corpus.ts";
import { measureEviction } from "./bench/eviction.ts";
import { measureFirstPull } from "./bench/first_pull.ts";
import { type Bench, type Figure, type Measure, MEASURES, type Round } from "./bench/measures.ts";
import { LARDER, PEER, PROXY, REPOSITORY, type Server, Workplace } from "./bench/servers.ts";
import { median } from "./median.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE = `Measures larder beside nginx in ten minutes; writes dist/bench.md too.

  --quick            one process each, three short rounds; no real NARs, no eviction, no first pull
  --only TEXT        only figures with TEXT in their name; "eviction" and "first pull" are tables of
                     their own, "first pull" by a real Nix
  --executable PATH  run this compiled larder, not the sources
  --json PATH        write larder's median of each figure here, too

BENCH_PEER names a program that serves another pull-through cache, for one more column. It is called
with a folder, a port of 127.0.0.1, the upstream's URL and the upstream's public key.
`;

/** Longer loads of fewer processes would tell less: two equal processes differ for their life. */
const FULL = { processes: 3, rounds: 2, seconds: 1, warmUp: 1 };
const QUICK = { processes: 1, rounds: 3, seconds: 1, warmUp: "once" } as const;

/** Tables of their own, which come last. */
const TABLES = { "eviction": measureEviction, "first pull": measureFirstPull };

/** Values of each server, one a round. */
type Values = Map<string, number[]>;

const { quick = false, only, executable, json } = optionsOrExit((words) =>
  parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      executable: { type: "string" },
      json: { type: "string" },
    },
  }).values, USAGE);
const startedAtMs = performance.now();
const measures = MEASURES.filter(({ figures }) =>
  figures.some(({ name }) => name.includes(only ?? "") && !(quick && name.includes("of programs")))
);
const tables = Object.entries(TABLES).filter(([name]) => name.includes(only ?? (quick ? "-" : "")));
if (measures.length + tables.length === 0) {
  const names = MEASURES.flatMap(({ figures }) => figures.map(({ name }) => name));
  console.error(
    [`No figure has "${only}". They are:`, ...names, ...Object.keys(TABLES)].join("\n"),
  );
  Deno.exit(2);
}
const workplace = new Workplace();
let isRight = true;
try {
  const parts = measures.length > 0 ? [await besideNginx()] : [];
  for (const [, measure] of tables) parts.push(await measure(workplace, executable));
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
  const text = [...parts, `The bench took ${seconds} s.\n`].join("\n");
  console.log(text);
  Deno.mkdirSync(`${REPOSITORY}dist`, { recursive: true });
  Deno.writeTextFileSync(`${REPOSITORY}dist/bench.md`, text);
} catch (error) {
  console.error(error);
  isRight = false;
} finally {
  await workplace[Symbol.asyncDispose]();
}
Deno.exit(isRight ? 0 : 1);

/** Each set of processes starts with empty folders: two equal processes differ for their life. */
async function besideNginx(): Promise<string> {
  const { processes, ...times } = quick ? QUICK : FULL;
  const corpus = new Corpus(workplace.makeFolder("corpus"));
  const files = workplace.nginx("upstream", () => ({ kind: "directory", root: corpus.folder }));
  await using upstream = await files.launch();
  const origin = { upstreamUrl: upstream.url, publicKey: corpus.publicKey.text };
  const peer = Deno.env.get("BENCH_PEER");
  const launchers = [
    workplace.larder({ ...origin, executable }),
    workplace.nginx(PROXY, (folder) => ({
      kind: "proxy",
      cacheFolder: `${folder}/cache`,
      upstreamUrl: upstream.url,
    })),
    ...(peer === undefined ? [] : [workplace.peer(peer, origin)]),
  ];
  const rows = new Map<Figure, Values>(
    measures.flatMap(({ figures }) => figures.map((figure) => [figure, new Map()])),
  );
  for (let set = 0; set < processes; set++) {
    await using running = new AsyncDisposableStack();
    const servers: Server[] = [];
    for (const launcher of launchers) servers.push(running.use(await launcher.launch()));
    for (const measure of measures) {
      const startedAtMs = performance.now();
      await runMeasure({ workplace, corpus, ...times }, measure, servers, rows);
      const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(0);
      console.error(`${measure.figures[0]?.name} (${seconds} s)`);
    }
  }
  if (json !== undefined) {
    const medians = [...rows].map(([{ name, unit }, values]) => (
      { name, unit, value: median(values.get(LARDER) ?? []) }
    ));
    Deno.writeTextFileSync(json, JSON.stringify(medians));
  }
  return report(rows, `medians (least–most) of ${processes} processes with ${times.rounds} rounds`);
}

/** Every round runs each server once, in rotating order: other work of the machine affects all. */
async function runMeasure(
  bench: Bench,
  { figures, prepare }: Measure,
  servers: readonly Server[],
  rows: ReadonlyMap<Figure, Values>,
): Promise<void> {
  const ready = new Map<Server, Round>();
  for (const server of servers) {
    await unlessPeer(server, async () => void ready.set(server, await prepare(bench, server)));
  }
  for (let round = 0; round < bench.rounds; round++) {
    const first = round % servers.length;
    for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
      await unlessPeer(server, async () => {
        const measured = await ready.get(server)?.(round) ?? [];
        for (const [at, figure] of figures.entries()) {
          const values = rows.get(figure);
          const value = measured[at] ?? NaN;
          values?.set(server.name, [...values.get(server.name) ?? [], value]);
        }
      });
    }
  }
}

/** A wrong answer of another cache must not end the bench: it has no value then. */
async function unlessPeer(server: Server, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (server.name !== PEER) throw error;
    console.error(`${PEER}: ${error}`);
  }
}

function report(rows: ReadonlyMap<Figure, Values>, how: string): string {
  const names = [...new Set([...rows.values()].flatMap((values) => [...values.keys()]))];
  const head = ["figure", ...names, `ratio to ${PROXY}`, "target", ""];
  const lines = [...rows].map(([figure, values]) => {
    const [own = [], twin = []] = [LARDER, PROXY].map((name) => values.get(name));
    // The rounds one by one, as other work of the machine affects both sides of a round.
    const ratio = median(own.map((value, at) => value / (twin[at] ?? NaN)));
    const { target } = figure;
    const beyond = median(own.map((value, at) => value - (twin[at] ?? NaN)));
    const isReached = target?.kind === "ratio"
      ? ratio >= target.limit
      : (target?.kind === "beyond" ? beyond : median(own)) <= (target?.limit ?? Infinity);
    return [
      figure.name,
      ...names.map((name) => shown(values.get(name) ?? [], figure)),
      Number.isFinite(ratio) ? ratio.toFixed(2) : "–",
      target === undefined ? "–" : `${target.kind} ${target.limit}`,
      target === undefined ? "" : isReached ? "reached" : "MISSED",
    ];
  });
  const table = [head, head.map((_, at) => at === 0 ? "---" : "---:"), ...lines]
    .map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  const larder = executable ?? `its sources on Deno ${Deno.version.deno}`;
  return `${navigator.hardwareConcurrency} cores, shared by load and servers; larder from ${larder}; ` +
    `${how}\n\n${table}`;
}

/** The median, with the range of the rounds in brackets. */
function shown(values: readonly number[], { unit }: Figure): string {
  if (!values.some(Number.isFinite)) return "–";
  const digits = unit === "s" ? 3 : unit === "ms" || unit === "µs" ? 1 : 0;
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)]
    .map((value) => value.toFixed(digits));
  return `${middle} ${unit}${low === high ? "" : ` (${low}–${high})`}`;
}
