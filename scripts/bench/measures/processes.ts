import assert from "node:assert/strict";
import { checkNarinfos } from "../check.ts";
import { download } from "../curl.ts";
import type { Bench, Measure } from "../figure.ts";
import type { Launcher } from "../server.ts";

const MEGABYTE = 1_000_000;

/** The Workers of larder begin behind its first answer. */
const WORKERS_MS = 2_000;

/** Time from the start of a process with a filled cache to its first right answer. */
export const START: Measure = {
  figures: [
    { name: "start", unit: "s", target: { kind: "below", limit: 0.5 } },
    {
      name: "memory at the first answer after a start",
      unit: "MB",
      target: { kind: "below", limit: 85 },
    },
    { name: "memory two seconds after it", unit: "MB", target: { kind: "none" } },
  ],
  launches: true,
  async prepare({ workplace, launchers }) {
    const start = async (name: string) => {
      const launcher = launcherOf(launchers, name);
      const folder = workplace.makeFolder(`start-${name.replaceAll(/\W/g, "-")}`);
      const startedAt = performance.now();
      await using server = await launcher.launch(folder);
      const seconds = (performance.now() - startedAt) / 1_000;
      const bytes = server.residentBytes();
      await new Promise((resolve) => setTimeout(resolve, WORKERS_MS));
      return [seconds, bytes / MEGABYTE, server.residentBytes() / MEGABYTE];
    };
    for (const { name } of launchers) await start(name);
    return async ({ name }) => await start(name);
  },
};

const FIRST_NARS = { bytes: 1_048_576, seed: 40 };

/** How much later the first NAR after a start comes than the second one. Both are misses. */
export const FIRST_NAR: Measure = {
  figures: [{
    name: "first NAR after a start, to its first byte: more than the second",
    unit: "ms",
    target: { kind: "below", limit: 5 },
  }],
  launches: true,
  async prepare(bench) {
    return async ({ name }, round) => [await firstBehindSecondMs(bench, name, round)];
  },
};

async function firstBehindSecondMs(
  { workplace, launchers, corpus }: Bench,
  name: string,
  round: number,
): Promise<number> {
  const objects = corpus.putNars({ ...FIRST_NARS, count: 2 });
  const folder = workplace.makeFolder(`first-nar-${name.replaceAll(/\W/g, "-")}-${round}`);
  await using server = await launcherOf(launchers, name).launch(folder);
  const times: number[] = [];
  for (const { narPath } of await checkNarinfos(server, objects, corpus.publicKey)) {
    const { firstByteMs } = await download(workplace, { url: server.url + narPath });
    times.push(firstByteMs);
  }
  return (times[0] ?? NaN) - (times[1] ?? NaN);
}

function launcherOf(launchers: readonly Launcher[], name: string): Launcher {
  const launcher = launchers.find((one) => one.name === name);
  assert.ok(launcher !== undefined);
  return launcher;
}

const MEMORY_TARGET = { kind: "below", limit: 180 } as const;

/** The memory that all measures before took of the largest process; comes last. */
export const MEMORY: Measure = {
  figures: [
    { name: "memory after all of the above", unit: "MB", target: MEMORY_TARGET },
    { name: "peak memory", unit: "MB", target: MEMORY_TARGET },
  ],
  prepare: () =>
    Promise.resolve(async (server) =>
      [server.residentBytes(), server.peakBytes()].map((bytes) => bytes / MEGABYTE)
    ),
};
