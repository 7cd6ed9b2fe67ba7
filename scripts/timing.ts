// Measures what larder takes beside a twin in the same run, in turns, and prints medians with their
// spread. The figures are for people: it ends with 0, and no test depends on them.
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/failure.ts";
import { hasZstdEncoder } from "../src/cache/recompress/encode_nar.ts";
import { clock } from "../src/runtime/current.ts";
import { fakeUpstream } from "../tests/support/fake_upstream.ts";
import { startLarder } from "../tests/support/larder_process.ts";
import { redisMissing, RedisServer } from "../tests/support/redis_server.ts";
import { servedNar, servedNarinfo } from "../tests/support/served_nar.ts";
import { makeStoreObject } from "../tests/support/store_object.ts";
import { median } from "./median.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE = `Usage: timing [--samples N] [--only TEXT]

Without options: nine samples of each row.
`;

/** Two things that are measured in turns, in one unit. */
interface Row {
  readonly name: string;
  readonly twin: string;
  readonly unit: string;
  /** Why it cannot be measured here; empty where it can. */
  readonly missing: string;
  readonly sample: () => Promise<{ readonly own: number; readonly twin: number }>;
}

/** Time of the requests on either side: the files that are recompressed must take longer. */
const ASKING_MS = 3_000;
const LARGE_NARS = 36;
const PART_BYTES = 8_000_000;

const ROWS: readonly Row[] = [
  {
    name: "the first cold path with a frozen Redis",
    twin: "with one that answers",
    unit: "ms",
    missing: redisMissing,
    sample: coldPaths,
  },
  ...(["narinfo", "NAR"] as const).map((kind) => ({
    name: `p99 of the first byte of a kept ${kind} during recompression`,
    twin: "before it",
    unit: "ms",
    missing: hasZstdEncoder() ? "" : "this Deno writes no zstd",
    sample: () => firstBytes(kind),
  })),
];

const { samples, only } = optionsOrExit(readOptions, USAGE);
console.log("| | median | least to most | its twin | median | least to most | ratio |");
console.log("| --- | ---: | ---: | --- | ---: | ---: | ---: |");
const skipped: string[] = [];
for (const row of ROWS.filter(({ name }) => name.includes(only))) {
  const reason = row.missing || await measured(row).catch(messageOf);
  if (reason !== "") skipped.push(`${row.name}: ${reason}`);
}
if (skipped.length > 0) console.log(`\nNot measured:\n${skipped.join("\n")}`);

function readOptions(words: readonly string[]) {
  const { values } = parseArgs({
    args: [...words],
    options: {
      samples: { type: "string", default: "9" },
      only: { type: "string", default: "" },
    },
  });
  const count = Number(values.samples);
  if (!Number.isInteger(count) || count < 1) {
    throw new Error(`Cannot take ${values.samples} samples`);
  }
  return { samples: count, only: values.only };
}

/** Prints a row. Resolves to an empty reason. */
async function measured({ name, twin, unit, sample }: Row): Promise<string> {
  const [owns, twins]: [number[], number[]] = [[], []];
  while (owns.length < samples) {
    const taken = await sample();
    owns.push(taken.own);
    twins.push(taken.twin);
  }
  const ratio = (median(owns) / median(twins)).toFixed(2);
  console.log(`| ${name} | ${shown(owns, unit)} | ${twin} | ${shown(twins, unit)} | ${ratio} |`);
  return "";
}

function shown(values: readonly number[], unit: string): string {
  const text = (value: number) => `${value.toFixed(value < 100 ? 1 : 0)} ${unit}`.trimEnd();
  return `${text(median(values))} | ${text(Math.min(...values))} to ${text(Math.max(...values))}`;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

/** A cold path with a Redis that answers, and then one with the same Redis frozen. */
async function coldPaths() {
  await using redis = await RedisServer.open();
  const objects = [0, 1].map((seed) => makeStoreObject({ name: "cold", size: 60_000, seed }));
  await using upstream = await fakeUpstream({ objects, stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": upstream.url,
    "cache-upstream-public-key": upstream.publicKey,
    "cache-redis-addrs": redis.address,
    "cache-prefetch": "false",
  });
  const pull = (hash = "") =>
    timed(async () => await servedNar(larder.port, await servedNarinfo(larder.port, hash)));
  const twin = await pull(objects[0]?.storePathHash);
  redis.freeze();
  return { own: await pull(objects[1]?.storePathHash), twin };
}

/** The p99 of the first byte before the first look of recompression, and then during it. */
async function firstBytes(kind: "narinfo" | "NAR") {
  const asked = makeStoreObject({ name: "asked", size: 60_000 });
  // Code, which zstd compresses at its usual speed.
  const program = Deno.readFileSync(Deno.execPath());
  const large = Array.from({ length: LARGE_NARS }, (_, at) => {
    const start = at * PART_BYTES % (program.length - PART_BYTES);
    const file = program.subarray(start, start + PART_BYTES);
    return makeStoreObject({ name: `large-${at}`, tree: { dir: { [`${at}`]: { file } } } });
  });
  // A file in zstd stays as it came.
  await using inZstd = await fakeUpstream({ objects: [asked], compression: "zstd", stored: true });
  await using inXz = await fakeUpstream({ objects: large, compression: "xz", stored: true });
  await using larder = await startLarder({
    "cache-upstream-url": [inZstd.url, inXz.url],
    "cache-upstream-public-key": [inZstd.publicKey, inXz.publicKey],
    "cache-recompress": "on",
    "prometheus-enabled": "true",
  });
  const { port, url } = larder;
  const narinfos = [];
  for (const { storePathHash } of [...large, asked]) {
    narinfos.push(await servedNarinfo(port, storePathHash));
  }
  for (const narinfo of narinfos) await servedNar(port, narinfo);
  const path = kind === "NAR" ? narinfos.at(-1)?.narPath : `/${asked.storePathHash}.narinfo`;
  await p99OfFirstByte(`${url}${path}`);
  const twin = await p99OfFirstByte(`${url}${path}`);
  // The first look counts them.
  while (await backlogOf(url) === 0) await clock.pause(100);
  const own = await p99OfFirstByte(`${url}${path}`);
  if (await backlogOf(url) === 0) throw new Error("Cannot measure: recompression ended before");
  return { own, twin };
}

async function p99OfFirstByte(url: string): Promise<number> {
  const tookMs: number[] = [];
  for (const startedAtMs = performance.now(); performance.now() < startedAtMs + ASKING_MS;) {
    const askedAtMs = performance.now();
    const reader = (await fetch(url)).body?.getReader();
    await reader?.read();
    tookMs.push(performance.now() - askedAtMs);
    while (!(await reader?.read())?.done);
  }
  return tookMs.sort((a, b) => a - b)[Math.floor(0.99 * tookMs.length)] ?? NaN;
}

/** The files that wait for recompression; 0 before they are counted. */
async function backlogOf(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^larder_recompress_backlog_files (\d+)$/m.exec(metrics)?.[1]);
}
