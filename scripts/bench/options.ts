import { parseArgs } from "node:util";

export interface BenchOptions {
  /** New processes of each server, one after the other. */
  readonly processes: number;
  /** Rounds with each of them. */
  readonly rounds: number;
  /** Time of wrk's load on a server in one round. */
  readonly seconds: number;
  /** Time of warming up, or each path once. */
  readonly warmUp: "once" | number;
  /** Measures larder and nginx proxy_cache alone, and no real NARs. */
  readonly pairOnly: boolean;
  /** A text: only figures with it in their name are measured. */
  readonly only: string | undefined;
  /** A compiled larder to run in place of the sources. */
  readonly executable: string | undefined;
  /** Further columns: Deno versions that run the sources, or executables. */
  readonly beside: readonly string[];
  /** A file for the medians, by figure. */
  readonly json: string | undefined;
}

export const USAGE = `Measures larder beside nginx in ten minutes; writes dist/bench.md too.

  --quick            one process each, three short rounds; no nginx directory, no real NARs, no
                     cost of telemetry, no eviction, no first pull: a minute
  --only TEXT        only figures with TEXT in their name; "eviction" and "first pull" are tables of
                     their own, "first pull" by a real Nix
  --executable PATH  run this compiled larder, not the sources
  --beside WHAT      a further column: "newest", "2.8.3" or another Deno that runs the sources, or
                     the path of an executable; as often as you like
  --json PATH        write larder's median of each figure here, too

BENCH_PEER names a program that serves another pull-through cache, for one more column. It is called
with a folder, a port of 127.0.0.1, the upstream's URL and the upstream's public key. It adds some
seven minutes.
`;

/** Longer loads of fewer processes would tell less: two equal processes differ for their life. */
const FULL = { processes: 3, rounds: 2, seconds: 1, warmUp: 1, pairOnly: false };
const QUICK = { processes: 1, rounds: 3, seconds: 1, warmUp: "once", pairOnly: true } as const;

/** Throws an Error that explains invalid arguments. */
export function readOptions(words: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      executable: { type: "string" },
      beside: { type: "string", multiple: true, default: [] },
      json: { type: "string" },
    },
  });
  const { quick, only, executable, beside, json } = values;
  return { ...(quick ? QUICK : FULL), only, executable, beside, json };
}
