import process from "node:process";
import { pause } from "../../src/base/pause.ts";

const TRIES_MAX = 3;

/** The least share of its time that a loop is run on a machine with a processor to spare. */
const CALM_SHARE_MIN = 0.8;
const LOOP_MS = 50;
const LOOP_EVERY_MS = 200;
const CALM_WAIT_MS = 15_000;

/** A scene took longer than it may. */
export class TooSlow extends Error {
  override readonly name = "TooSlow";
}

/** Fails as too slow unless it took less than `limitMs`. For the scenes of `timedTest`. */
export function assertInTime(tookMs: number, limitMs: number, what = "it"): void {
  if (tookMs >= limitMs) {
    throw new TooSlow(`${what} took ${Math.round(tookMs)} ms of less than ${limitMs}`);
  }
}

/** Registers a test whose scene holds times, and opens all that it needs anew. */
export function timedTest(name: string, scene: () => Promise<void>): void {
  Deno.test(name, () => bestOfThree(scene));
}

/**
 * Repeats a scene that was too slow, twice at most, when the machine is calm: a slow larder is slow
 * three times, and a busy machine is not. Every other failure counts at once.
 */
export async function bestOfThree(scene: () => Promise<void>, calm = machineIsCalm): Promise<void> {
  for (let tries = 1;; tries++) {
    try {
      return await scene();
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === TRIES_MAX) throw error;
      console.log(`Again, on a machine that may be busy: ${error.message}`);
      await calm();
    }
  }
}

/** Resolves when the machine has a processor to spare, or after a while. */
async function machineIsCalm(): Promise<void> {
  const until = performance.now() + CALM_WAIT_MS;
  while (processorShare() < CALM_SHARE_MIN && performance.now() < until) {
    await pause(LOOP_EVERY_MS);
  }
}

/** The share of a moment for which this process was run. */
function processorShare(): number {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  while (performance.now() - startedAt < LOOP_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - startedAt);
}
