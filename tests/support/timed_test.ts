import process from "node:process";
import { clock } from "../../src/runtime/current.ts";
import { procText } from "./proc_text.ts";

const TRUE_FAILURES_MAX = 3;
const TRIES_MAX = 6;

/** The share of a scene's processor time that the host may take. */
const STOLEN_SHARE_MAX = 0.1;

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
 * Repeats a scene that was too slow, twice at most, when the machine is calm. A slow larder is slow
 * three times; a busy machine is not. Every other failure counts at once. A time in which the
 * host gave the processor to others counts for nothing. Where all are such, the log says so.
 */
export async function bestOfThree(
  scene: () => Promise<void>,
  calm = machineIsCalm,
  watchHost = hostWatch,
): Promise<void> {
  let trueFailures = 0;
  for (let tries = 1;; tries++) {
    const wasStarved = watchHost();
    try {
      return await scene();
    } catch (error) {
      if (!(error instanceof TooSlow)) throw error;
      if (!wasStarved()) trueFailures++;
      if (trueFailures === TRUE_FAILURES_MAX) throw error;
      if (tries === TRIES_MAX && trueFailures > 0) throw error;
      if (tries === TRIES_MAX) {
        return console.log(`Not judged, for want of a host: ${error.message}`);
      }
      console.log(`Again, on a machine that may be busy: ${error.message}`);
      await calm();
    }
  }
}

/** Starts to watch. The result tells whether the host took much of the processor since. */
export function hostWatch(): () => boolean {
  const before = processorTicks();
  return () => {
    const { used, stolen } = processorTicks();
    return stolen - before.stolen > STOLEN_SHARE_MAX * (used - before.used);
  };
}

/** Of all processors: ticks in use, stolen ones among them. proc(5) names the columns. */
function processorTicks(): { readonly used: number; readonly stolen: number } {
  // On another system nothing is known of the host.
  const [line = ""] = procText("/proc/stat").split("\n");
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = line
    .split(/\s+/).slice(1).map(Number);
  return { used: user + nice + system + irq + softirq + stolen, stolen };
}

/** Resolves when the machine has a processor to spare, or after a while. */
async function machineIsCalm(): Promise<void> {
  const untilMs = performance.now() + CALM_WAIT_MS;
  while (processorShare() < CALM_SHARE_MIN && performance.now() < untilMs) {
    await clock.pause(LOOP_EVERY_MS);
  }
}

/** The share of a moment for which this process was run. */
function processorShare(): number {
  const startedAtMs = performance.now();
  const before = process.cpuUsage();
  while (performance.now() - startedAtMs < LOOP_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - startedAtMs);
}
