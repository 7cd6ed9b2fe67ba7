import { runWorld, type WorldOptions, type WorldResult } from "./world.ts";

/** More worlds would seldom find a smaller one. */
const TRIES_MAX = 60;

/** A world that breaks a promise, and what it did until then. */
export interface FailedWorld {
  readonly options: WorldOptions;
  readonly result: WorldResult;
}

/**
 * A smaller world that still breaks the same promise: with fewer faults, members, clients, upstreams
 * and objects, and a shorter time.
 */
export async function shrink(failed: FailedWorld): Promise<FailedWorld> {
  const clause = failed.result.violations[0]?.clause;
  let best = failed;
  let tries = 0;
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const options of smallerThan(best.options)) {
      if (++tries > TRIES_MAX) return best;
      const result = await runWorld(options);
      if (result.violations[0]?.clause !== clause) continue;
      best = { options, result };
      isSmaller = true;
      break;
    }
  }
  return best;
}

/** Worlds with one thing less, the largest steps first. */
function* smallerThan(options: WorldOptions): Generator<WorldOptions> {
  const { upstreamFaults, memberFaults, busyMs } = options;
  if (busyMs > 60_000) yield { ...options, busyMs: Math.floor(busyMs / 2) };
  for (const fault of upstreamFaults) {
    yield { ...options, upstreamFaults: upstreamFaults.filter((one) => one !== fault) };
  }
  for (const fault of memberFaults) {
    yield { ...options, memberFaults: memberFaults.filter((one) => one !== fault) };
  }
  for (const count of ["members", "clients", "upstreams", "objects"] as const) {
    if (options[count] > 1) yield { ...options, [count]: Math.floor(options[count] / 2) };
  }
  if (options.pushers > 0) yield { ...options, pushers: options.pushers - 1 };
  if (options.operates) yield { ...options, operates: false };
  if (options.prefetches) yield { ...options, prefetches: false };
  if (options.limitBytes < Infinity) yield { ...options, limitBytes: Infinity };
}
