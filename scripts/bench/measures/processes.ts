import assert from "node:assert/strict";
import { checkNarinfos } from "../check.ts";
import { download } from "../curl.ts";
import type { Bench, Figure, Measure } from "../figure.ts";
import type { Launcher, Server } from "../server.ts";

const MEGABYTE = 1_000_000;

/** The Workers of larder begin behind its first answer. */
const WORKERS_MS = 2_000;

const AT_START = "memory at the first answer after a start";

/** Time from the start of a process with a filled cache to its first right answer. */
export const START: Measure = {
  figures: [
    { name: "start", unit: "s", target: { kind: "below", limit: 0.5 } },
    ...memoryFigures(AT_START, 85),
    { name: "memory two seconds after it", unit: "MB", target: { kind: "none" } },
  ],
  launches: "first set",
  async prepare({ workplace, launchers }) {
    const launch = (name: string) => {
      const folder = workplace.makeFolder(`start-${name.replaceAll(/\W/g, "-")}`);
      return launcherOf(launchers, name).launch(folder);
    };
    const start = async (name: string) => {
      const startedAtMs = performance.now();
      await using server = await launch(name);
      const seconds = (performance.now() - startedAtMs) / 1_000;
      const memory = megabytesOf(server);
      await new Promise((resolve) => setTimeout(resolve, WORKERS_MS));
      return [seconds, ...memory, server.residentBytes() / MEGABYTE];
    };
    // A later start finds the folder's files.
    for (const { name } of launchers) await (await launch(name))[Symbol.asyncDispose]();
    return async ({ name }) => await start(name);
  },
};

/** A figure of resident memory, and its parts. */
function memoryFigures(name: string, limit: number): readonly Figure[] {
  const [files, own] = [`${name}: of mapped files`, `${name}: of its own`];
  return [
    { name, unit: "MB", target: { kind: "below", limit }, parts: [files, own] },
    { name: files, unit: "MB", target: { kind: "none" } },
    { name: own, unit: "MB", target: { kind: "none" } },
  ];
}

/** Values for `memoryFigures`. */
function megabytesOf(server: Server): readonly number[] {
  const { files, own } = server.residentParts();
  return [server.residentBytes(), files, own].map((bytes) => bytes / MEGABYTE);
}

const FIRST_NARS = { bytes: 1_048_576, seed: 40 };

const FIRST_NAR_NAME = "first NAR after a start, to its first byte";
const [FIRST_ONE, SECOND_ONE] = [`${FIRST_NAR_NAME}: the first`, `${FIRST_NAR_NAME}: the second`];

/** How much later the first NAR after a start comes than the second one. Both are misses. */
export const FIRST_NAR: Measure = {
  figures: [
    {
      name: `${FIRST_NAR_NAME}: more than the second`,
      unit: "ms",
      target: { kind: "below", limit: 5 },
      parts: [FIRST_ONE, SECOND_ONE],
    },
    { name: FIRST_ONE, unit: "ms", target: { kind: "none" } },
    { name: SECOND_ONE, unit: "ms", target: { kind: "none" } },
  ],
  launches: "each set",
  async prepare(bench) {
    return async ({ name }) => {
      const [first = NaN, second = NaN] = await firstBytesMs(bench, name);
      return [first - second, first, second];
    };
  },
};

/** Times to the first byte of the first two NARs of a new process. */
async function firstBytesMs(
  { workplace, launchers, corpus }: Bench,
  name: string,
): Promise<readonly number[]> {
  const objects = corpus.putNars({ ...FIRST_NARS, count: 2 });
  const folder = workplace.makeFolder(
    `first-nar-${name.replaceAll(/\W/g, "-")}-${crypto.randomUUID()}`,
  );
  await using server = await launcherOf(launchers, name).launch(folder);
  const times: number[] = [];
  for (const { narPath } of await checkNarinfos(server, objects, corpus.publicKey)) {
    const { firstByteMs } = await download(workplace, { url: server.url + narPath });
    times.push(firstByteMs);
  }
  return times;
}

function launcherOf(launchers: readonly Launcher[], name: string): Launcher {
  const launcher = launchers.find((one) => one.name === name);
  assert.ok(launcher !== undefined);
  return launcher;
}

const AT_END = "memory after all of the above";
const MEMORY_MAX_MB = 180;

/** The memory that all measures before took of the largest process; comes last. */
export const MEMORY: Measure = {
  figures: [
    ...memoryFigures(AT_END, MEMORY_MAX_MB),
    {
      name: "peak memory",
      unit: "MB",
      target: { kind: "below", limit: MEMORY_MAX_MB },
      parts: [AT_END],
    },
  ],
  prepare: () =>
    Promise.resolve(async (server) => [...megabytesOf(server), server.peakBytes() / MEGABYTE]),
};
