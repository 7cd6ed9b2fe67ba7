import { messageOf } from "../../base/failure.ts";
import { SingleFlight } from "../../base/single_flight.ts";
import type { WorkLeases } from "../../locks/work_leases.ts";
import type { MetadataStore, NarinfoRow } from "../../metadata/metadata_store.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { NarinfoPrefetcher, PrefetchRequest } from "../prefetch/prefetch_ports.ts";
import type { Demotions } from "../sources/demotions.ts";
import {
  type FetchedNarinfo,
  fetchNarinfo,
  type FetchNarinfoDeps,
  prefetchNarinfo,
  storedNarinfo,
} from "./fetch_narinfo.ts";
import type { NegativeCache } from "./negative_cache.ts";

/** How long other members wait for a database that is slow to take a narinfo. */
const LANDING_MAX_MS = 2_000;

/** Memory of paths that upstreams lack, and of upstreams that failed to send a NAR. */
export interface UpstreamMemory {
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
}

export interface NarinfoFetchesDeps extends FetchNarinfoDeps {
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

export interface ClientNarinfo {
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
