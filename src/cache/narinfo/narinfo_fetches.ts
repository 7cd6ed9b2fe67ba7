import { messageOf } from "../../base/failure.ts";
import { SingleFlight } from "../../base/single_flight.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import {
  type ChangeOf,
  type ChangeWriter,
  type MetadataStore,
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
import type { Logger } from "../../telemetry/logger.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { PoolAnswer } from "../../upstream/narinfo_query.ts";
import type { AskOptions, SpareUpstreams, UpstreamPool } from "../../upstream/upstream_pool.ts";
import { formerFile } from "../forms/recompressed.ts";
import {
  isSameFile,
  narRowOf,
  narUrlOf,
  ownNarRowOf,
  sourceOf,
  verifiedRowOf,
} from "../nar/nar_naming.ts";
import type { NegativeCache, Signer } from "./serve_narinfo.ts";
import type { NarinfoPrefetcher, PrefetchRequest } from "../prefetch/prefetch_ports.ts";
import type { Demotions } from "../sources/nar_candidates.ts";
import type { StorePathNames } from "../nar/store_path_names.ts";

/** How long other members wait for a database that is slow to take a narinfo. */
const LANDING_MAX_MS = 2_000;

/** Memory of paths that upstreams lack, and of upstreams that failed to send a NAR. */
interface UpstreamMemory {
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
}

interface NarinfoFetchesDeps extends FetchNarinfoDeps {
  readonly metadata: Pick<
    MetadataStore,
    "sourcesOf" | "apply" | "findNar" | "findNarinfo" | "narinfoLanded" | "referencesOf"
  >;
  readonly memory: UpstreamMemory;
  /** Default: there are no other members. */
  readonly leases?: Pick<WorkLeases, "narinfo"> | undefined;
  readonly loops: Pick<Loops, "isPassedOn">;
  readonly log: Logger;
}

/** A client's request for a narinfo. */
export interface NarinfoRequest {
  readonly storePathHash: StorePathHash;
  /** The stored row that may lead nowhere, if there is one. */
  readonly row: NarinfoRow | undefined;
  /** True: the row's NAR file was kept, and is lost. */
  readonly isLost?: boolean;
  /** True: the row could not be read, so nothing is known to be absent. */
  readonly isUnread?: boolean;
  readonly requestId: string;
}

interface ClientNarinfo {
  readonly narinfo: FetchedNarinfo;
  readonly isJoined: boolean;
  /** True if the request joined a prefetch. */
  readonly hasJoinedPrefetch: boolean;
}

/** A prefetch: no client waited for it at its start. */
interface PrefetchInFlight {
  readonly narinfo: Promise<FetchedNarinfo>;
  /** True if it covers the upstreams of a client's request. */
  readonly isComplete: boolean;
  /** Count of the negative cache's clearings, as the request began. */
  readonly clearings: number;
}

/** Requests narinfos from upstreams, once for all simultaneous requests of one store path. */
export class NarinfoFetches implements NarinfoPrefetcher {
  readonly #deps: NarinfoFetchesDeps;
  readonly #inFlight = new SingleFlight<StorePathHash, FetchedNarinfo>();
  readonly #prefetches = new Map<StorePathHash, PrefetchInFlight>();

  constructor(deps: NarinfoFetchesDeps) {
    this.#deps = deps;
  }

  async fetch(request: NarinfoRequest): Promise<ClientNarinfo> {
    const { storePathHash, row, isUnread = false, ...options } = request;
    if (this.#deps.loops.isPassedOn) {
      const { requestId } = options;
      const narinfo = await fetchNarinfo(this.#deps, storePathHash, options);
      if (narinfo.kind === "unknown") this.#listen(narinfo.later, requestId);
      return { narinfo, isJoined: false, hasJoinedPrefetch: false };
    }
    const prefetch = this.#prefetches.get(storePathHash);
    if (prefetch !== undefined && row === undefined) {
      const narinfo = await prefetch.narinfo;
      const isAbsent = narinfo.kind === "absent" && prefetch.isComplete;
      if (isAbsent && !isUnread) this.#deps.memory.negative.add(storePathHash, prefetch.clearings);
      if (isAbsent || narinfo.kind === "found") {
        return { narinfo, isJoined: true, hasJoinedPrefetch: true };
      }
    }
    const { value, joined } = this.#inFlight.run(storePathHash, () => this.#fetchLeased(request));
    return { narinfo: await value, isJoined: joined, hasJoinedPrefetch: false };
  }

  /** True while a request for the narinfo runs. */
  isInFlight(storePathHash: StorePathHash): boolean {
    return this.#prefetches.has(storePathHash) || this.#inFlight.has(storePathHash);
  }

  /**
   * Prefetches a narinfo; a later client joins. `came` is called before that client gets it. Never
   * rejects. Not while `isInFlight`.
   */
  async prefetch(
    storePathHash: StorePathHash,
    { spare, requestId, came }: PrefetchRequest,
  ): Promise<FetchedNarinfo> {
    const demoted = this.#deps.memory.demotions.ofPath(storePathHash);
    const urls = spare.urls.filter((url) => !demoted.has(url));
    const fetchOnce = () => prefetchNarinfo(this.#deps, storePathHash, { urls, requestId });
    const narinfo = this.#leased(storePathHash, fetchOnce)
      .catch((error): FetchedNarinfo => {
        const facts = { error: messageOf(error), request_id: requestId };
        this.#deps.log.event("narinfo-not-kept", facts, "debug");
        return { kind: "unknown" };
      })
      .then((outcome) => {
        this.#prefetches.delete(storePathHash);
        if (outcome.kind === "found") came();
        return outcome;
      });
    const { clearings } = this.#deps.memory.negative;
    const isComplete = spare.isComplete && urls.length === spare.urls.length;
    this.#prefetches.set(storePathHash, { narinfo, isComplete, clearings });
    return await narinfo;
  }

  #fetchLeased(request: NarinfoRequest): Promise<FetchedNarinfo> {
    const fetchOnce = () => this.#fetch(request);
    // The other members have this row, too: its sources have failed here alone.
    return request.row === undefined ? this.#leased(request.storePathHash, fetchOnce) : fetchOnce();
  }

  /** Asks upstreams, unless another member has stored their answer meanwhile. */
  async #leased(
    storePathHash: StorePathHash,
    fetchOnce: () => Promise<FetchedNarinfo>,
  ): Promise<FetchedNarinfo> {
    const { metadata, leases } = this.#deps;
    if (leases === undefined) return await fetchOnce();
    let stored: FetchedNarinfo | undefined;
    const lease = await leases.narinfo(storePathHash, async () => {
      // An unreadable database counts as one without the narinfo.
      stored = await storedNarinfo(metadata, storePathHash).catch(() => undefined);
      return stored !== undefined;
    });
    try {
      return stored ?? await fetchOnce();
    } finally {
      // A member with the next lease must find the narinfo.
      const landing = metadata.narinfoLanded?.(storePathHash, LANDING_MAX_MS);
      if (landing === undefined) await lease[Symbol.asyncDispose]();
      else void landing.then(() => lease[Symbol.asyncDispose]());
    }
  }

  async #fetch(
    { row, storePathHash, isUnread, ...options }: NarinfoRequest,
  ): Promise<FetchedNarinfo> {
    const { demotions, negative } = this.#deps.memory;
    const { requestId } = options;
    if (row !== undefined) await this.#demoteSources(row);
    const except = demotions.ofPath(storePathHash);
    if (except.size > 0) {
      // File hash and size are not signed: it may have been their narinfos that were bad.
      const narinfo = await fetchNarinfo(this.#deps, storePathHash, { ...options, except });
      if (narinfo.kind === "found") return narinfo;
      if (narinfo.kind === "unknown") this.#listen(narinfo.later, requestId);
      demotions.forgivePath(storePathHash);
    }
    const { clearings } = negative;
    const narinfo = await fetchNarinfo(this.#deps, storePathHash, options);
    const note = ({ kind }: FetchedNarinfo) => {
      if (kind === "absent" && !isUnread) negative.add(storePathHash, clearings);
    };
    note(narinfo);
    if (narinfo.kind === "unknown") this.#listen(narinfo.later?.then(note), requestId);
    return narinfo;
  }

  /** Demotes the upstreams that failed to send the narinfo's file: they come last for the path. */
  async #demoteSources({ narName, storePathHash }: NarinfoRow): Promise<void> {
    const { metadata, memory: { demotions } } = this.#deps;
    // Without the database the upstreams are asked in their own order.
    for (const { upstream } of await metadata.sourcesOf(narName).catch(() => [])) {
      const how = demotions.get(narName, upstream);
      if (how === undefined) continue;
      demotions.addPath(storePathHash, upstream, how);
      if (how === "missing") demotions.forgive(narName, upstream);
    }
  }

  /** Works without a client; the next request finds the narinfo stored. */
  #listen(later: Promise<unknown> | undefined, request_id: string): void {
    later?.catch((error) => {
      this.#deps.log.event("narinfo-not-kept", { error: messageOf(error), request_id });
    });
  }
}

interface NarinfoOptions extends AskOptions {
  /** True: the path's NAR is lost, so a narinfo of another NAR may replace its row. */
  readonly isLost?: boolean;
}

interface FetchNarinfoDeps {
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
async function fetchNarinfo(
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
async function prefetchNarinfo(
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
async function storedNarinfo(
  metadata: Pick<FetchNarinfoDeps["metadata"], "findNarinfo" | "referencesOf">,
  storePathHash: StorePathHash,
): Promise<FetchedNarinfo | undefined> {
  const row = await metadata.findNarinfo(storePathHash);
  if (row === undefined) return undefined;
  return { kind: "found", row, references: await metadata.referencesOf(storePathHash) };
}
