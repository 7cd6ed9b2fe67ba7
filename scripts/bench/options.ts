import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly rounds: number;
  /** How long wrk loads a server in one round. */
  readonly seconds: number;
  /** How long before the first round, or each path once. */
  readonly warmUp: "once" | number;
  /** Measures larder and nginx proxy_cache only: the targets are about them. */
  readonly pairOnly: boolean;
  /** Only figures whose name has this text. */
  readonly only: string | undefined;
  /** A compiled larder to run in place of the sources. */
  readonly executable: string | undefined;
  /** A file for the medians, by figure. */
  readonly json: string | undefined;
}

export const USAGE = `Measures larder beside nginx; writes dist/bench.md too.

  --quick            three short rounds, no nginx directory, no eviction: about a minute
  --only TEXT        only figures with TEXT in their name; "eviction" is a table of its own
  --executable PATH  run this compiled larder, not the sources
  --json PATH        write larder's median of each figure here, too
`;

const FULL = { rounds: 5, seconds: 3, warmUp: 2, pairOnly: false };
const QUICK = { rounds: 3, seconds: 1, warmUp: "once", pairOnly: true } as const;

/** Throws an Error that says what is wrong with the words. */
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
