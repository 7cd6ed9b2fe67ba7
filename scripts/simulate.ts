// Plays worlds of larders, upstreams and clients on virtual time, each from a seed, and prints each
// broken promise. `--seed N` plays one world; `--worlds N` or `--seconds N` plays as many.
import { parseArgs } from "node:util";
import { drawOptions, runWorld } from "../tests/simulation/world.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    worlds: { type: "string" },
    seconds: { type: "string" },
    log: { type: "boolean", default: false },
  },
});
const first = Number(values.seed);
const untilMs = values.seconds === undefined
  ? Infinity
  : performance.now() + Number(values.seconds) * 1_000;
const worlds = values.worlds === undefined
  ? (values.seconds === undefined ? 1 : Infinity)
  : Number(values.worlds);
const startedAtMs = performance.now();
let [virtualMs, failed, played] = [0, 0, 0];
for (let seed = first; seed < first + worlds && performance.now() < untilMs; seed++) {
  const options = drawOptions(seed);
  const result = await runWorld(options);
  played++;
  virtualMs += result.virtualMs;
  if (values.log) console.log(result.log.join("\n"));
  if (result.violations.length === 0) continue;
  failed++;
  const [violation] = result.violations;
  console.log(
    `seed ${seed}: ${result.violations.length} violations; ${violation?.clause} at ${
      (violation?.atMs ?? 0) / 1_000
    } s: ${violation?.what}`,
  );
}
const hours = virtualMs / 3_600_000;
const seconds = (performance.now() - startedAtMs) / 1_000;
console.log(
  `${played} worlds, ${hours.toFixed(1)} virtual hours in ${seconds.toFixed(1)} s (${
    (hours * 3_600 / seconds).toFixed(0)
  } an hour), ${failed} failed`,
);
if (failed > 0) Deno.exit(1);
