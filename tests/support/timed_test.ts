const TRIES_MAX = 3;

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
 * Repeats a scene that was too slow, twice at most: a slow larder is slow three times, and a busy
 * machine is not. Every other failure counts at once.
 */
export async function bestOfThree(scene: () => Promise<void>): Promise<void> {
  for (let tries = 1;; tries++) {
    try {
      return await scene();
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === TRIES_MAX) throw error;
      console.log(`Again, on a machine that may be busy: ${error.message}`);
    }
  }
}
