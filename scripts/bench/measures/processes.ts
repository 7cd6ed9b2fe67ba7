import assert from "node:assert/strict";
import { checkNarinfos } from "../check.ts";
import { download } from "../curl.ts";
import type { Bench, Measure } from "../figure.ts";
import type { Launcher } from "../server.ts";

/** Time from the start of a process with a filled cache to its first right answer. */
export const START: Measure = {
  figures: [{ name: "start", unit: "s", target: { kind: "below", limit: 0.5 } }],
  launches: true,
  async prepare({ workplace, launchers }) {
    const start = async (name: string) => {
      const launcher = launcherOf(launchers, name);
      const folder = workplace.makeFolder(`start-${name.replaceAll(/\W/g, "-")}`);
      const startedAt = performance.now();
      await using _server = await launcher.launch(folder);
      return [(performance.now() - startedAt) / 1_000];
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

/** The peak memory of all measures before; comes last. */
export const PEAK_MEMORY: Measure = {
  figures: [{
    name: "peak memory of the largest process",
    unit: "MB",
    target: { kind: "below", limit: 180 },
  }],
  prepare: () => Promise.resolve(async (server) => [server.peakBytes() / 1_000_000]),
};
