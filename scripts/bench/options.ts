import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly rounds: number;
  /** Time of wrk's load on a server in one round. */
  readonly seconds: number;
  /** Time of warming up, or each path once. */
  readonly warmUp: "once" | number;
  /** Measures larder and nginx proxy_cache alone, which have targets. */
  readonly pairOnly: boolean;
  /** Only figures with this text in their name. */
  readonly only: string | undefined;
  /** A compiled larder to run in place of the sources. */
  readonly executable: string | undefined;
  /** A file for the medians, by figure. */
  readonly json: string | undefined;
}

export const USAGE = `Measures larder beside nginx; writes dist/bench.md too.

  --quick            three short rounds, no nginx directory, no eviction, no first pull: a minute
  --only TEXT        only figures with TEXT in their name; "eviction" and "first pull" are tables of
                     their own, "first pull" by a real Nix
  --executable PATH  run this compiled larder, not the sources
  --json PATH        write larder's median of each figure here, too
`;

const FULL = { rounds: 5, seconds: 3, warmUp: 2, pairOnly: false };
const QUICK = { rounds: 3, seconds: 1, warmUp: "once", pairOnly: true } as const;

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      executable: { type: "string" },
      json: { type: "string" },
    },
  });
  const { quick, only, executable, json } = values;
  return { ...(quick ? QUICK : FULL), only, executable, json };
}
