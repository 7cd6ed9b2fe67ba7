import fc from "fast-check";
import { testUnless } from "./program.ts";

const RUNS = 500;
const seed = numberFrom("FUZZ_SEED") ?? crypto.getRandomValues(new Int32Array(1))[0] ?? 0;

/** A longer search: so many milliseconds for each property, whatever its number of runs. */
const longMs = numberFrom("FUZZ_MS");
const replay = `FUZZ_SEED=${seed}${longMs === undefined ? "" : ` FUZZ_MS=${longMs}`}`;
let announced = false;

/** How long a property with a real server is tried: a short look, unless the caller wants more. */
const SOCKET_MS = 4_000;
const socketMs = numberFrom("FUZZ_SOCKET_MS") ?? SOCKET_MS;

/**
 * Registers a test that tries `property` on random input. The seed is printed, and again when an
 * input fails: `FUZZ_SEED=<that number>`, with the same `FUZZ_MS`, replays it. `excuse` names a
 * missing back end. Where a run takes a second, `shrinks` is false: a search for a smaller input
 * that fails would look like a hang.
 */
export function checkProperty<Values>(
  name: string,
  property: fc.IProperty<Values> | fc.IAsyncProperty<Values>,
  { runs = RUNS, excuse = "", shrinks = true }: {
    readonly runs?: number;
    readonly excuse?: string;
    readonly shrinks?: boolean;
  } = {},
): void {
  testUnless(excuse, name, async () => {
    if (!announced) console.log(replay);
    announced = true;
    try {
      // One that waits cannot be interrupted without leaving something open.
      const extent = longMs === undefined || property.isAsync()
        ? { numRuns: runs }
        : { numRuns: Infinity, interruptAfterTimeLimit: longMs };
      await fc.assert(property, { seed, ...extent, endOnFailure: !shrinks });
    } catch (cause) {
      const report = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${replay} replays this: ${report}`, { cause });
    }
  });
}

/**
 * Tries `attempt` on random input for `FUZZ_SOCKET_MS`, and once at least. The seed is printed, and
 * again when an input fails: that seed, with at least the same time, comes to the same input.
 */
export async function tryForTime<Value>(
  arbitrary: fc.Arbitrary<Value>,
  attempt: (value: Value) => Promise<void>,
): Promise<void> {
  const seeded = `FUZZ_SEED=${seed} FUZZ_SOCKET_MS=${socketMs}`;
  console.log(seeded);
  let last = Promise.resolve();
  const property = fc.asyncProperty(arbitrary, (value) => last = attempt(value));
  const limits = { numRuns: Infinity, interruptAfterTimeLimit: socketMs };
  const details = await fc.check(property, { seed, ...limits });
  // The time limit interrupts the last one, which leaves nothing open only when it is over.
  const [ended] = await Promise.allSettled([last]);
  // Without a counterexample the first one was interrupted.
  if (details.counterexample !== null) {
    const report = fc.defaultReportMessage(details);
    throw new Error(`${seeded} replays this: ${report}`, { cause: details.errorInstance });
  }
  if (ended.status === "rejected") throw new Error(seeded, { cause: ended.reason });
}

function numberFrom(variable: string): number | undefined {
  const permission = Deno.permissions.querySync({ name: "env", variable });
  const given = permission.state === "granted" ? Deno.env.get(variable) : undefined;
  if (given === undefined) return undefined;
  if (!/^-?[0-9]{1,10}$/.test(given)) throw new Error(`${variable} is no integer: ${given}`);
  return Number(given) | 0;
}
