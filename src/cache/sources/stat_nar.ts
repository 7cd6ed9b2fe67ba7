import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { NarBodySource } from "../../upstream/upstream.ts";
import { narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import { firstToAnswer, type SourceAttempt } from "./source_race.ts";

export interface StatNarDeps {
  readonly candidates: NarCandidatesDeps;
  /** Sources of NARs by the URL of an upstream or a member. */
  readonly narClients: { get(url: string): Pick<NarBodySource, "statNar"> | undefined };
  /** How long one source has the request alone. */
  readonly hedgeAfterMs: number;
  /** Called with each source that says that it lacks the file. */
  readonly absent?: (upstream: string) => void;
}

type FoundNar = Awaited<ReturnType<NarBodySource["statNar"]>>;

interface SizeAttempt extends SourceAttempt {
  readonly found: Promise<FoundNar>;
}

/** What is known of a file, and the upstream or member that said it. */
type FoundAt = NonNullable<FoundNar> & Pick<NarSource, "upstream">;

/** The NAR file's size, from the first upstream that has the file, or the member that gets it. */
export async function statNar(
  { candidates, hedgeAfterMs, ...asking }: StatNarDeps,
  nar: NarRow,
  requestId: string,
): Promise<FoundAt | undefined> {
  const sources = narCandidates(candidates, nar, requestId);
  const first = await firstToAnswer({
    next: async () => (await sources.next()).value ?? undefined,
    ask: (source) => ask(source, asking),
    hedgeAfterMs,
  });
  const found = await first?.found;
  return first && found && { ...found, upstream: first.source.upstream };
}

function ask(
  { upstream, location }: NarSource,
  { narClients, absent }: Pick<StatNarDeps, "narClients" | "absent">,
): SizeAttempt {
  const source = { upstream, location };
  const quicker = new AbortController();
  const stat = async () => {
    const size = await narClients.get(upstream)?.statNar(location, quicker.signal);
    if (size === undefined) absent?.(upstream);
    return size;
  };
  const found = stat().catch(() => undefined);
  const answered = found.then((size) => size !== undefined);
  return { source, found, answered, cancel: () => quicker.abort() };
}
