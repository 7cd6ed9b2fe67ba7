import { checkKept, checkNarinfos, checkNars } from "../check.ts";
import type { Corpus } from "../corpus.ts";
import { median } from "../rounds.ts";
import type { Server } from "../server.ts";
import type { Workplace } from "../workplace.ts";
import { type LoadResult, runLoad } from "../wrk.ts";

const NARINFOS = { count: 3_000, seed: 1 };
const NARS = { count: 200, bytes: 50 * 1_024, seed: 2 };
const CONNECTIONS = 16;
const ROUNDS = 3;

type Hits = Pick<LoadResult, "perSecond" | "cpuUs">;

export interface HitFigures {
  readonly narinfos: Hits;
  readonly nars: Hits;
}

/** Hits of all larders of one storage at a time: medians of the rounds. */
export async function measureHits(
  workplace: Workplace,
  corpus: Corpus,
  { larders, seconds }: { readonly larders: readonly Server[]; readonly seconds: number },
): Promise<HitFigures> {
  const narinfos = corpus.putNarinfos(NARINFOS).map(({ narinfoPath }) => narinfoPath);
  let nars: readonly string[] = [];
  for (const larder of larders) {
    await checkNarinfos(larder, corpus.putNarinfos(NARINFOS), corpus.publicKey);
    const found = await checkNarinfos(larder, corpus.putNars(NARS), corpus.publicKey);
    await checkNars(larder, found);
    nars = found.map(({ narPath }) => narPath);
    await checkKept(larder, [...narinfos, ...nars]);
  }
  const load = async (paths: readonly string[], seconds: number) => {
    const one = { paths, connections: CONNECTIONS, seconds, status: 200 } as const;
    return sumOf(await Promise.all(larders.map((larder) => runLoad(workplace, larder, one))));
  };
  const rounds = async (paths: readonly string[]) => {
    await load(paths, 1);
    const results: Hits[] = [];
    for (let round = 0; round < ROUNDS; round++) results.push(await load(paths, seconds));
    return {
      perSecond: median(results.map(({ perSecond }) => perSecond)),
      cpuUs: median(results.map(({ cpuUs }) => cpuUs)),
    };
  };
  return { narinfos: await rounds(narinfos), nars: await rounds(nars) };
}

/** The rate of all, and the processor time of one request of any. */
function sumOf(results: readonly LoadResult[]): Hits {
  const perSecond = results.reduce((sum, one) => sum + one.perSecond, 0);
  const cpuUsPerSecond = results.reduce((sum, one) => sum + one.perSecond * one.cpuUs, 0);
  return { perSecond, cpuUs: cpuUsPerSecond / perSecond };
}
