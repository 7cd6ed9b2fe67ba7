export interface SteadyLoad {
  readonly url: string;
  readonly paths: readonly string[];
  readonly perSecond: number;
  /** Called before each request. */
  readonly goesOn: () => boolean;
}

/** Shortest interval of timers. */
const TICK_MS = 1;

/**
 * Requests the paths in turn at a steady rate, without waiting for answers, and returns the
 * latencies in ms. Throws unless each is a 200.
 */
export async function steadyLatencies(load: SteadyLoad): Promise<readonly number[]> {
  const { url, paths, perSecond, goesOn } = load;
  const startedAtMs = performance.now();
  const answers: Promise<number>[] = [];
  while (goesOn()) {
    const due = (performance.now() - startedAtMs) * perSecond / 1_000;
    while (answers.length < due) {
      answers.push(askedMs(`${url}${paths[answers.length % paths.length]}`));
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  return await Promise.all(answers);
}

/** Latency of a whole answer in ms. Throws unless it is a 200. */
export async function askedMs(url: string): Promise<number> {
  const sentAt = performance.now();
  const response = await fetch(url);
  await response.bytes();
  if (response.status !== 200) throw new Error(`Cannot measure: ${response.status} for ${url}`);
  return performance.now() - sentAt;
}

/** The smallest value that `part` of all values do not exceed. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}
