import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { NarBodySource } from "../../upstream/upstream.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import { type AskedSource, firstToAnswer } from "./source_race.ts";

export interface StatNarDeps {
  readonly candidates: NarCandidatesDeps;
  /** Sources of NARs by the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "statNar">>;
  /** How long one source has the request alone. */
  readonly hedgeAfterMs: number;
}

type Found = Awaited<ReturnType<NarBodySource["statNar"]>>;

interface AskedSize extends AskedSource {
  readonly found: Promise<Found>;
}

/** The NAR file's size, from the first upstream that has the file. */
export async function statNar(
  { candidates, narSources, hedgeAfterMs }: StatNarDeps,
  nar: NarRow,
  requestId: string,
): Promise<Found> {
  const sources = narCandidates(candidates, nar, requestId);
  const first = await firstToAnswer({
    next: async () => (await sources.next()).value ?? undefined,
    ask: (source) => ask(source, narSources),
    putBack() {},
    hedgeAfterMs,
  });
  return await first?.found;
}

function ask(source: NarSource, narSources: StatNarDeps["narSources"]): AskedSize {
  const quicker = new AbortController();
  const stat = narSources.get(source.upstream)?.statNar(source.location, quicker.signal);
  const found = Promise.resolve(stat).catch(() => undefined);
  const answered = found.then((size) => size !== undefined);
  return { source, found, answered, cancel: () => quicker.abort() };
}
