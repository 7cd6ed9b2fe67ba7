import type { ChangeWriter, NarFinder, NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Demotions } from "./demotions.ts";
import { sourceOf } from "../learn_narinfo.ts";

export interface NarCandidatesDeps {
  readonly metadata: NarFinder & ChangeWriter;
  readonly pool: Pick<UpstreamPool, "narinfo" | "order">;
  readonly demotions: Demotions;
}

/**
 * Where to ask for a NAR file, best first: the upstreams known to have it in order of preference,
 * then those that are found to have the same file when they are asked, and last the ones that
 * sent a bad one before. Ask for the next one only when it is needed: finding them costs.
 */
export async function* narCandidates(
  { metadata, pool, demotions }: NarCandidatesDeps,
  nar: NarRow,
): AsyncGenerator<NarSource> {
  const order = await pool.order();
  const known = (await metadata.sourcesOf(nar.name))
    .filter(({ upstream }) => order.includes(upstream))
    .toSorted((a, b) => order.indexOf(a.upstream) - order.indexOf(b.upstream));
  const isDemoted = ({ upstream }: NarSource) => demotions.has(nar.name, upstream);

  yield* known.filter((source) => !isDemoted(source));
  yield* await findMore({ metadata, pool, demotions }, nar, known);
  yield* known.filter(isDemoted);
}

async function findMore(
  { metadata, pool }: NarCandidatesDeps,
  nar: NarRow,
  known: readonly NarSource[],
): Promise<readonly NarSource[]> {
  const except = new Set(known.map(({ upstream }) => upstream));
  const [storePathHash] = await metadata.narinfosOf(nar.name);
  if (storePathHash === undefined || except.size === (await pool.order()).length) return [];
  const answer = await pool.narinfo(storePathHash, except);
  if (answer.kind !== "found") return [];
  const found = [answer.best, ...answer.others]
    .filter(({ narinfo }) =>
      narinfo.fileHash === nar.fileHash && narinfo.narHash === nar.narHash &&
      narinfo.compression === nar.compression
    )
    .map(sourceOf);
  await metadata.apply(
    found.map((source) => ({ kind: "put-source" as const, narName: nar.name, source })),
  );
  return found;
}
