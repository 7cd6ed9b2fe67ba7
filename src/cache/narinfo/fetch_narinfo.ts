import {
  type ChangeOf,
  type ChangeWriter,
  type NarFinder,
  type NarinfoFinder,
  type NarinfoRow,
  NarNameTaken,
  type NarRow,
  NEVER_USED_AT_MS,
  Outdated,
  type ReferenceFinder,
} from "../../metadata/metadata_store.ts";
import { fingerprintDigestOf } from "../../nix/fingerprint.ts";
import type { Narinfo } from "../../nix/narinfo.ts";
import { formatNarinfo } from "../../nix/narinfo_format.ts";
import { nameInNarinfo } from "../../nix/narinfo_name.ts";
import { hashOfBaseName, type StorePathHash } from "../../nix/store_path.ts";
import type { PoolAnswer } from "../../upstream/narinfo_query.ts";
import type { AskOptions, SpareUpstreams, UpstreamPool } from "../../upstream/upstream_pool.ts";
import {
  isSameFile,
  narRowOf,
  narUrlOf,
  ownNarRowOf,
  sourceOf,
  verifiedRowOf,
} from "../nar/nar_naming.ts";
import { formerFile } from "../forms/recompressed.ts";
import type { StorePathNames } from "../store_path_names.ts";
import type { Signer } from "./own_signature.ts";

export interface NarinfoOptions extends AskOptions {
  /** True: the path's NAR is lost, so a narinfo of another NAR may replace its row. */
  readonly isLost?: boolean;
}

export interface FetchNarinfoDeps {
  readonly pool: Pick<UpstreamPool, "narinfo" | "prefetchNarinfo">;
  readonly metadata: ChangeWriter & NarinfoFinder & ReferenceFinder & Pick<NarFinder, "findNar">;
  readonly signer: Signer;
  readonly nowMs: () => number;
  /** The most paths with an upstream's signature whose signed facts larder remembers. */
  readonly signedPathsMax: () => number;
  /** Learns the names in new narinfos, for the download that follows. Default: nobody does. */
  readonly names?: Pick<StorePathNames, "note"> | undefined;
}

/** The upstreams' answer. */
export type FetchedNarinfo =
  | {
    readonly kind: "found";
    readonly row: NarinfoRow;
    readonly references: readonly StorePathHash[];
  }
  | { readonly kind: "absent" }
  /** `later`: the answer of slow upstreams, where there are any. */
  | { readonly kind: "unknown"; readonly later?: Promise<FetchedNarinfo> };

/**
 * Requests a narinfo from the upstreams (except those in `except`) and keeps the best, with our URL
 * and our signature. It writes the narinfo before larder serves it, since its NAR URL must be good
 * for months. A database that takes longer than half a second delays nothing.
 */
export async function fetchNarinfo(
  deps: FetchNarinfoDeps,
  storePathHash: StorePathHash,
  { isLost = false, ...options }: NarinfoOptions,
): Promise<FetchedNarinfo> {
  const answer = await deps.pool.narinfo(storePathHash, options);
  return await storeAnswer(deps, storePathHash, { answer, isLost, usedAtMs: deps.nowMs() });
}

/**
 * The same for a prefetched narinfo. It has no use, so eviction takes it before all paths that a
 * client has requested.
 */
export async function prefetchNarinfo(
  deps: FetchNarinfoDeps,
  storePathHash: StorePathHash,
  { urls, requestId }: Pick<SpareUpstreams, "urls"> & { readonly requestId: string },
): Promise<FetchedNarinfo> {
  const answer = await deps.pool.prefetchNarinfo(storePathHash, { urls }, requestId);
  return await storeAnswer(deps, storePathHash, { answer, usedAtMs: NEVER_USED_AT_MS });
}

/** An answer of the upstreams, and how to write it. */
interface Answered<Answer extends PoolAnswer = PoolAnswer> {
  readonly answer: Answer;
  readonly usedAtMs: number;
  readonly isLost?: boolean;
}

async function storeAnswer(
  deps: FetchNarinfoDeps,
  storePathHash: StorePathHash,
  { answer, ...writing }: Answered,
): Promise<FetchedNarinfo> {
  if (answer.kind === "absent") return answer;
  if (answer.kind === "unknown") {
    const { kind, later } = answer;
    if (later === undefined) return { kind };
    const store = (late: PoolAnswer) =>
      storeAnswer(deps, storePathHash, { ...writing, answer: late });
    return { kind, later: later.then(store) };
  }
  try {
    return await storeFound(deps, storePathHash, { ...writing, answer });
  } catch (error) {
    // The upstreams' narinfo may be that of another build than the uploaded one.
    const isUploaded = error instanceof Outdated;
    const uploaded = isUploaded ? await storedNarinfo(deps.metadata, storePathHash) : undefined;
    if (uploaded === undefined) throw error;
    return uploaded;
  }
}

/** Writes the best narinfo. Throws Outdated where a client has uploaded one meanwhile. */
async function storeFound(
  { metadata, signer, nowMs, signedPathsMax, names }: FetchNarinfoDeps,
  storePathHash: StorePathHash,
  { answer, usedAtMs, isLost = false }: Answered<Extract<PoolAnswer, { kind: "found" }>>,
): Promise<FetchedNarinfo> {
  const seenAtMs = nowMs();
  const { narinfo, trusted, ownSignature: made } = answer.best;
  const ownSignature = trusted ? made ?? signer.sign(narinfo) : undefined;
  const references = [...new Set(narinfo.references.map(hashOfBaseName))];
  const signedFacts = trusted ? [rememberUpstream(narinfo, signedPathsMax())] : [];
  const put = async (nar: NarRow, fileSize = nar.fileSize): Promise<FetchedNarinfo> => {
    const url = narUrlOf(nar.name);
    const file = { hasHash: nar.fileHash !== undefined, fileSize };
    const body = formatNarinfo(narinfo, { url, withoutSignature: ownSignature?.text, file });
    const signed = ownSignature === undefined ? {} : { ownSignature };
    const row = { storePathHash, body, narName: nar.name, trusted, ...signed };
    const sources = [answer.best, ...answer.others]
      .filter((offer) => isSameFile(offer.narinfo, nar)).map(sourceOf);
    const facts = { row, references, nar: { ...nar, seenAtMs }, sources, atMs: usedAtMs };
    const put = { kind: "put-narinfo", ...facts, unlessKept: !isLost } as const;
    await metadata.apply([put, ...signedFacts]);
    const name = nameInNarinfo(body);
    if (name !== undefined) names?.note(nar.name, { storePathHash, name });
    return { kind: "found", row, references };
  };
  try {
    return await putOrVerified(metadata, narRowOf(narinfo), put);
  } catch (error) {
    if (!(error instanceof NarNameTaken)) throw error;
    return await putOrVerified(metadata, ownNarRowOf(narRowOf(narinfo)), put);
  }
}

function rememberUpstream(narinfo: Narinfo, countMax: number): ChangeOf<"put-signed"> {
  const { storePathHash } = narinfo;
  const digest = fingerprintDigestOf(narinfo);
  return { kind: "put-signed", storePathHash, digest, isUploaded: false, countMax };
}

/**
 * Puts the NAR as its narinfo claims it. Where that name stands for its kept file with other facts,
 * it puts the verified ones. Most NARs are new: so their row is read only after a refusal.
 */
async function putOrVerified(
  metadata: FetchNarinfoDeps["metadata"],
  claimed: NarRow,
  put: (nar: NarRow, fileSize?: number) => Promise<FetchedNarinfo>,
): Promise<FetchedNarinfo> {
  try {
    return await put(claimed);
  } catch (error) {
    if (!(error instanceof NarNameTaken)) throw error;
    const known = await metadata.findNar(claimed.name).catch(() => undefined);
    const verified = verifiedRowOf(known, claimed);
    if (verified === claimed) throw error;
    return await put(verified, known?.kept && formerFile(known, known.kept).fileSize);
  }
}

/** The stored narinfo, of another member or of an upload. */
export async function storedNarinfo(
  metadata: Pick<FetchNarinfoDeps["metadata"], "findNarinfo" | "referencesOf">,
  storePathHash: StorePathHash,
): Promise<FetchedNarinfo | undefined> {
  const row = await metadata.findNarinfo(storePathHash);
  if (row === undefined) return undefined;
  return { kind: "found", row, references: await metadata.referencesOf(storePathHash) };
}
