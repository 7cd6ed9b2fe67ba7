// Plays worlds of larders, upstreams and clients on virtual time, each from a seed, and prints each
// world that breaks a promise: its seed, a smaller world that still breaks it, and the last events
// of that one. `--seeds FILE` plays the seeds of a file, one at the start of each line.
import { parseArgs } from "node:util";
import { shrink } from "../tests/simulation/shrink.ts";
import { drawOptions, runWorld } from "../tests/simulation/world.ts";
import { optionsOrExit } from "./options_or_exit.ts";

const USAGE = "Usage: simulate [--seed N] [--worlds N] [--seconds N] [--seeds FILE] [--log]";

/** The last events of a world that breaks a promise. */
const SHOWN_EVENTS = 30;

const values = optionsOrExit(readOptions, USAGE);
const endsAtMs = performance.now() + Number(values.seconds ?? Infinity) * 1_000;
const startedAtMs = performance.now();
let [virtualMs, failed, played] = [0, 0, 0];
for (const seed of seeds()) {
  if (performance.now() > endsAtMs) break;
  const options = drawOptions(seed);
  const result = await runWorld(options);
  played++;
  virtualMs += result.virtualMs;
  if (values.log) console.log(result.log.join("\n"));
  const [violation] = result.violations;
  if (violation === undefined) continue;
  failed++;
  console.log(`seed ${seed}: ${violation.clause} at ${violation.atMs} ms: ${violation.what}`);
  const smaller = await shrink({ options, result });
  console.log(`a smaller world: ${JSON.stringify(smaller.options)}`);
  const { log } = smaller.result;
  const brokenAt = log.findIndex((line) => line.includes(" VIOLATION "));
  console.log(log.slice(Math.max(0, brokenAt + 1 - SHOWN_EVENTS), brokenAt + 1).join("\n"));
}
const hours = virtualMs / 3_600_000;
const perHour = hours * 3_600_000 / (performance.now() - startedAtMs);
console.error(`${hours.toFixed(1)} virtual hours, ${perHour.toFixed(0)} an hour`);
console.log(`${played - failed} passed, ${failed} failed, 0 skipped`);
if (failed > 0 || played === 0) Deno.exit(1);

function* seeds(): Generator<number> {
  if (values.seeds === undefined) {
    for (let at = 0; at < values.worlds; at++) yield values.seed + at;
    return;
  }
  for (const line of Deno.readTextFileSync(values.seeds).split("\n")) {
    const [, seed] = /^([0-9]+)(?:\s|$)/.exec(line) ?? [];
    if (seed !== undefined) yield Number(seed);
  }
}

/** Throws an Error that explains invalid arguments. */
function readOptions(words: readonly string[]) {
  const { values } = parseArgs({
    args: [...words],
    options: {
      seed: { type: "string", default: "1" },
      worlds: { type: "string" },
      seconds: { type: "string" },
      seeds: { type: "string" },
      log: { type: "boolean", default: false },
    },
  });
  const { seed, seconds, seeds, log } = values;
  const worlds = values.worlds ?? (seconds === undefined ? "1" : undefined);
  for (const text of [seed, worlds, seconds]) {
    if (text !== undefined && !/^[0-9]+$/.test(text)) {
      throw new Error(`"${text}": expected a number`);
    }
  }
  return { seed: Number(seed), worlds: Number(worlds ?? Infinity), seconds, seeds, log };
}
