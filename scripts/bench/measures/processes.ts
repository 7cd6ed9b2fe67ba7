import assert from "node:assert/strict";
import type { Measure } from "../figure.ts";

/** Time from the start of a process with a filled cache to its first right answer. */
export const START: Measure = {
  figures: [{ name: "start", unit: "s", target: { kind: "below", limit: 0.5 } }],
  async prepare({ workplace, launchers }) {
    const start = async (name: string) => {
      const launcher = launchers.find((one) => one.name === name);
      assert.ok(launcher !== undefined);
      const folder = workplace.makeFolder(`start-${name.replace(" ", "-")}`);
      const startedAt = performance.now();
      await using _server = await launcher.launch(folder);
      return [(performance.now() - startedAt) / 1_000];
    };
    for (const { name } of launchers) await start(name);
    return async ({ name }) => await start(name);
  },
};

/** The peak memory of all measures before; comes last. */
export const PEAK_MEMORY: Measure = {
  figures: [{
    name: "peak memory of the largest process",
    unit: "MB",
    target: { kind: "below", limit: 150 },
  }],
  prepare: () => Promise.resolve(async (server) => [server.peakBytes() / 1_000_000]),
};
