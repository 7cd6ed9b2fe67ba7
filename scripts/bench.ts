// Measures larder beside nginx serving the same files and beside nginx as a caching proxy, and
// prints a table of Markdown. All run on one machine in one run. See scripts/bench/options.ts for
// the options.
import { mediansOf } from "./bench/compare.ts";
import { Durations } from "./bench/durations.ts";
import type { Measure } from "./bench/figure.ts";
import { EVICTION_NAME, measureEviction } from "./bench/eviction/measure_eviction.ts";
import { FIRST_PULL_NAME, measureFirstPull } from "./bench/first_pull/measure_first_pull.ts";
import {
  BUSY_CLIENTS,
  COLD_NARINFOS,
  KNOWN_MISSES,
  narinfoHits,
} from "./bench/measures/narinfos.ts";
import { BEHIND_NGINX } from "./bench/measures/behind_nginx.ts";
import { LOG_LINES } from "./bench/measures/log_lines.ts";
import { bigNarHits, COLD_NAR, SMALL_NAR_HITS } from "./bench/measures/nars.ts";
import { FIRST_NAR, MEMORY, START } from "./bench/measures/processes.ts";
import { BACKLOG, realNars } from "./bench/measures/real_nars.ts";
import { TELEMETRY_COST } from "./bench/measures/telemetry.ts";
import { NGINX_WORKERS } from "./bench/nginx_conf.ts";
import { type BenchOptions, readOptions, USAGE } from "./bench/options.ts";
import { report } from "./bench/report.ts";
import { runAll } from "./bench/run_all.ts";
import { REPOSITORY, Workplace } from "./bench/workplace.ts";
import { optionsOrExit } from "./options_or_exit.ts";

/** All measures, in running order. */
const MEASURES: readonly Measure[] = [
  narinfoHits(1),
  narinfoHits(16),
  BUSY_CLIENTS,
  KNOWN_MISSES,
  SMALL_NAR_HITS,
  bigNarHits(1),
  bigNarHits(8),
  BEHIND_NGINX,
  COLD_NAR,
  COLD_NARINFOS,
  realNars("xz"),
  realNars("zstd"),
  BACKLOG,
  FIRST_NAR,
  START,
  MEMORY,
  TELEMETRY_COST,
  LOG_LINES,
];

/** Those with a table of their own, which come last. */
const TABLES = new Map([
  [EVICTION_NAME, measureEviction],
  [FIRST_PULL_NAME, measureFirstPull],
]);

const TOOLS = ["nginx", "wrk", "curl"];
const CANNOT_RUN_STATUS = 2;
const INTERRUPTED_STATUS = 130;

// Debian has nginx there; PATH of a user who is not root lacks it.
Deno.env.set("PATH", `${Deno.env.get("PATH")}:/usr/sbin`);

const durations = new Durations(() => performance.now());
const options = optionsOrExit(readOptions, USAGE);
const measures = (options.pairOnly ? MEASURES.filter(isQuick) : MEASURES).filter(({ figures }) =>
  figures.some(({ name }) => name.includes(options.only ?? ""))
);
if (measures.length === 0 && tablesOf(options).length === 0) {
  const names = MEASURES.flatMap(({ figures }) => figures.map(({ name }) => name));
  const list = [...names, ...TABLES.keys()].map((name) => `  ${name}`).join("\n");
  giveUp(`No figure's name has "${options.only}". They are:\n${list}`);
}
if (measures.length > 0) { for (const tool of TOOLS) await requireTool(tool); }

const workplace = new Workplace();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(signal, async () => {
    await workplace[Symbol.asyncDispose]();
    Deno.exit(INTERRUPTED_STATUS);
  });
}
try {
  const results = measures.length > 0 ? await runAll(workplace, options, measures, durations) : [];
  const beside = results.length > 0 ? report(results, await facts(options)) : "";
  if (options.json !== undefined) {
    Deno.writeTextFileSync(options.json, JSON.stringify(mediansOf(results)));
  }
  const tables = [beside];
  for (const [name, measure] of tablesOf(options)) {
    tables.push(await durations.part(name, () => measure(workplace, options.executable)));
  }
  const isWhole = !options.pairOnly && options.only === undefined;
  const text = [...tables.filter(Boolean), `${durations.line({ isWhole })}\n`].join("\n");
  console.log(text);
  Deno.mkdirSync(`${REPOSITORY}dist`, { recursive: true });
  Deno.writeTextFileSync(`${REPOSITORY}dist/bench.md`, text);
} finally {
  await workplace[Symbol.asyncDispose]();
}
Deno.exit(0);

/**
 * Real NARs and the cost of telemetry each take longer than the rest of a quick bench, which lacks
 * the nginx with the files themselves.
 */
function isQuick(measure: Measure): boolean {
  return measure !== TELEMETRY_COST && measure !== BEHIND_NGINX &&
    measure.figures.every(({ name }) => !name.includes("of programs"));
}

function tablesOf({ only, pairOnly }: BenchOptions) {
  return [...TABLES].filter(([name]) => name.includes(only ?? (pairOnly ? "-" : "")));
}

async function facts(
  { processes, rounds, seconds, executable }: BenchOptions,
): Promise<readonly string[]> {
  const { stderr } = await new Deno.Command("nginx", { args: ["-v"] }).output();
  const nginx = new TextDecoder().decode(stderr).trim().replace(/^.*nginx\//, "nginx ");
  const larder = executable ?? `its sources on Deno ${Deno.version.deno}`;
  return [
    `${navigator.hardwareConcurrency} cores, shared by load and servers; ${nginx} with ` +
    `${NGINX_WORKERS} worker; larder from ${larder}`,
    "defaults on all sides, each with its log in a file",
    "but larder knows absent paths for an hour, and nginx has sendfile and tcp_nopush",
    "nginx also keeps the load's connections, and as a proxy 64 to its upstream with HTTP/1.1",
    `medians (least–most) of ${processes} processes with ${rounds} rounds each, which take ` +
    "turns; start and first NAR have processes of their own",
    `wrk with one thread, ${seconds} s a round; big files with one curl for each client`,
  ];
}

async function requireTool(tool: string): Promise<void> {
  try {
    await new Deno.Command(tool, { args: ["-V"], stdout: "null", stderr: "null" }).output();
  } catch {
    giveUp(`Cannot run the bench: ${tool} is not installed (Debian: apt install nginx-light wrk)`);
  }
}

function giveUp(message: string): never {
  console.error(message);
  Deno.exit(CANNOT_RUN_STATUS);
}
