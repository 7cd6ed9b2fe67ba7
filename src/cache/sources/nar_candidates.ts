import type { ChangeWriter, NarFinder, NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { Offer } from "../../upstream/narinfo_query.ts";
import type { AskOptions, UpstreamPool } from "../../upstream/upstream_pool.ts";
import { isSameFile, leadsToFile, sourceOf } from "../nar/nar_naming.ts";
import type { Demotions } from "./demotions.ts";

/** Sources, best first. */
export type NarCandidates = AsyncGenerator<NarSource, void>;

/** Stands for the URL of this member, where its own copy is a source of a NAR. */
export const OWN_COPY_URL = "larder://this-member";

/** The members that download NARs now. */
export interface MemberNarSources {
  /** The one that downloads this file, as a source of it. Never rejects. */
  sourceOf(nar: NarName): Promise<NarSource | undefined>;
  /** Call it when `holder` does not send the file, or stopped. Never rejects. */
  stopped(nar: NarName, holder: NarSource): Promise<void>;
  /** The sources behind the holder, and in front of upstreams. Default: none. */
  after?(nar: NarName): AsyncIterable<NarSource>;
}

export interface NarCandidatesDeps {
  readonly metadata: NarFinder & ChangeWriter;
  readonly pool: Pick<UpstreamPool, "narinfo" | "order" | "waitOf" | "probeIfDown">;
  readonly demotions: Demotions;
  /** Finds the name of a NAR's store path, for the log lines that follow. Never rejects. */
  readonly nameOf?: (narName: NarName) => string | Promise<string | undefined>;
  /** Default: there are no other members. */
  readonly members?: MemberNarSources;
}

/**
 * The sources of a NAR file, best first. A member that downloads it comes before upstreams. Known
 * ones come in order of preference, then upstreams that turn out to have the same file, then
 * demoted ones. It leaves out silent upstreams. Take the next source only when needed: finding one
 * costs requests.
 */
export async function* narCandidates(
  { metadata, pool, demotions, nameOf, members }: NarCandidatesDeps,
  nar: NarRow,
  requestId: string,
): NarCandidates {
  await nameOf?.(nar.name);
  const holder = await members?.sourceOf(nar.name);
  if (holder !== undefined) {
    yield holder;
    yield* members?.after?.(nar.name) ?? [];
  }
  const order = pool.order("nar");
  const known = (await metadata.sourcesOf(nar.name))
    .filter(({ upstream }) => order.includes(upstream))
    .toSorted((a, b) => order.indexOf(a.upstream) - order.indexOf(b.upstream));
  const isDemoted = ({ upstream }: NarSource) => demotions.get(nar.name, upstream) !== undefined;

  const answers = ({ upstream }: NarSource) => pool.waitOf(upstream) !== "none";

  if (!known.some(answers)) await pool.probeIfDown(known.map(({ upstream }) => upstream), "nar");
  yield* known.filter((source) => answers(source) && !isDemoted(source));
  const except = new Set(known.map(({ upstream }) => upstream));
  for (const { length } = order; except.size < length;) {
    const offers = await findMore({ metadata, pool, demotions }, nar, { requestId, except });
    // The pool waits for the best offer alone: the next query finds those behind it.
    for (const { upstream } of offers) except.add(upstream);
    if (offers.length === 0) break;
    yield* offers.filter(({ narinfo }) => leadsToFile(narinfo, nar)).map(sourceOf);
  }
  yield* known.filter((source) => answers(source) && isDemoted(source));
}

/** Offers for the NAR's path; those of the same file become sources. */
async function findMore(
  { metadata, pool }: NarCandidatesDeps,
  nar: NarRow,
  options: AskOptions,
): Promise<readonly Offer[]> {
  const [storePathHash] = await metadata.narinfosOf(nar.name);
  if (storePathHash === undefined) return [];
  const answer = await pool.narinfo(storePathHash, options);
  if (answer.kind !== "found") return [];
  const offers = [answer.best, ...answer.others];
  await metadata.apply(
    offers.filter(({ narinfo }) => isSameFile(narinfo, nar)).map((offer) => (
      { kind: "put-source" as const, narName: nar.name, source: sourceOf(offer) }
    )),
  );
  return offers;
}
