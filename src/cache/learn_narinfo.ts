import type { ChangeWriter, NarFinder, NarinfoRow } from "../metadata/metadata_store.ts";
import { formatNarinfo } from "../nix/narinfo_format.ts";
import { hashOfBaseName, type StorePathHash } from "../nix/store_path.ts";
import type { Offer, UpstreamPool } from "../upstream/upstream_pool.ts";
import { narRowOf, narUrlOf } from "./nar_naming.ts";
import type { Signer } from "./own_signature.ts";

export interface LearnNarinfoDeps {
  readonly pool: Pick<UpstreamPool, "narinfo">;
  readonly metadata: NarFinder & ChangeWriter;
  readonly signer: Signer;
  readonly nowMs: () => number;
}

/** What asking the upstreams came to. */
export type Learned =
  | { readonly kind: "learned"; readonly row: NarinfoRow }
  | { readonly kind: "absent" | "unknown" };

/**
 * Asks the upstreams (but those of `except`) for a narinfo and keeps the best, with our URL and
 * our signature. It is written before it is handed out: its NAR URL must be good for months.
 */
export async function learnNarinfo(
  { pool, metadata, signer, nowMs }: LearnNarinfoDeps,
  storePathHash: StorePathHash,
  except?: ReadonlySet<string>,
): Promise<Learned> {
  const answer = await pool.narinfo(storePathHash, except);
  if (answer.kind !== "found") return { kind: answer.kind };
  const { narinfo, trusted } = answer.best;
  const nar = await narRowOf(narinfo, metadata);
  const ownSignature = trusted ? signer.sign(narinfo) : undefined;
  const row: NarinfoRow = {
    storePathHash,
    body: formatNarinfo(narinfo, {
      url: narUrlOf(nar.name),
      ...(signer.keyName === undefined ? {} : { ownSignatureName: signer.keyName }),
    }),
    narName: nar.name,
    trusted,
    ...(ownSignature === undefined ? {} : { ownSignature }),
  };
  const sameFile = answer.others.filter(({ narinfo: other }) => isSameFile(other, narinfo));
  await metadata.apply([{
    kind: "put-narinfo",
    row,
    references: [...new Set(narinfo.references.map(hashOfBaseName))],
    nar,
    sources: [answer.best, ...sameFile].map(sourceOf),
    atMs: nowMs(),
  }]);
  return { kind: "learned", row };
}

export function sourceOf({ upstream, narinfo }: Offer) {
  return { upstream, location: narinfo.url };
}

/** True when both lead to the same bytes, so that either can be asked for them. */
function isSameFile(a: Offer["narinfo"], b: Offer["narinfo"]): boolean {
  return a.fileHash === b.fileHash && a.narHash === b.narHash && a.narSize === b.narSize &&
    a.compression === b.compression;
}
