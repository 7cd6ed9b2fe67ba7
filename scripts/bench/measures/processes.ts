import assert from "node:assert/strict";
import type { Measure } from "../figure.ts";

/** From the start of the process to its first right answer, with what it kept before. */
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

/** Comes last: the peak of all that was measured before it. */
export const PEAK_MEMORY: Measure = {
  figures: [{
    name: "peak memory of the largest process",
    unit: "MB",
    target: { kind: "below", limit: 150 },
  }],
  prepare: () => Promise.resolve(async (server) => [server.peakBytes() / 1_000_000]),
};
