import fc from "fast-check";

const RUNS = 500;
const seed = chooseSeed();
let announced = false;

/**
 * Registers a test that tries `property` on random input. The seed is printed, and again
 * when an input fails: `FUZZ_SEED=<that number>` replays it.
 */
export function checkProperty<Values>(
  name: string,
  property: fc.IProperty<Values> | fc.IAsyncProperty<Values>,
  { runs = RUNS }: { readonly runs?: number } = {},
): void {
  Deno.test(name, async () => {
    if (!announced) console.log(`FUZZ_SEED=${seed}`);
    announced = true;
    try {
      await fc.assert(property, { seed, numRuns: runs });
    } catch (cause) {
      const report = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`FUZZ_SEED=${seed} replays this: ${report}`, { cause });
    }
  });
}

function chooseSeed(): number {
  const permission = Deno.permissions.querySync({ name: "env", variable: "FUZZ_SEED" });
  const given = permission.state === "granted" ? Deno.env.get("FUZZ_SEED") : undefined;
  if (given === undefined) return crypto.getRandomValues(new Int32Array(1))[0] ?? 0;
  if (!/^-?[0-9]{1,10}$/.test(given)) throw new Error(`FUZZ_SEED is no integer: ${given}`);
  return Number(given) | 0;
}
