import { messageOf } from "../../base/failure.ts";
import type { MetadataStore, NarinfoRow } from "../../metadata/metadata_store.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { OUTAGES } from "../../telemetry/outages.ts";
import type { Loops } from "../../upstream/loops.ts";
import type { CacheResult } from "../nar/nar_answer.ts";
import type { ClientNarinfoRequest, NarinfoResponseWatcher } from "../prefetch/prefetch_ports.ts";
import type { Demotions } from "../sources/demotions.ts";
import type { Touches } from "../touches.ts";
import type { NarinfoFetches, NarinfoRequest } from "./narinfo_fetches.ts";
import type { NegativeCache } from "./negative_cache.ts";
import type { Signer } from "./own_signature.ts";

/** `text` is `undefined` for an absent narinfo. */
export interface NarinfoAnswer {
  readonly cacheResult: CacheResult;
  readonly text: string | undefined;
  /** True for the first GET of a prefetched narinfo, and for each HEAD before it. */
  readonly isFirstOfPrefetch: boolean;
}

const KNOWN_ABSENT: NarinfoAnswer = {
  cacheResult: "HIT",
  text: undefined,
  isFirstOfPrefetch: false,
};

export interface NarinfoServerDeps {
  /** The rows of narinfos, and the signature that goes below each. */
  readonly rows: {
    readonly metadata: Pick<MetadataStore, "findNarinfo" | "findNar" | "sourcesOf">;
    readonly signer: Signer;
  };
  readonly narinfoFetches: Pick<NarinfoFetches, "fetch">;
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly touches: Touches;
  readonly prefetch: NarinfoResponseWatcher;
  readonly loops: Pick<Loops, "isPassedOn">;
  readonly log: Logger;
}

/** Answers narinfo requests: from the metadata, the negative cache, or upstreams. */
export class NarinfoServer {
  readonly #deps: NarinfoServerDeps;
  readonly #outage;

  constructor(deps: NarinfoServerDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, OUTAGES.narinfoLookup);
  }

  async serve(
    storePathHash: StorePathHash,
    { requestId, isHead }: ClientNarinfoRequest,
  ): Promise<NarinfoAnswer> {
    const { rows: { metadata, signer }, negative, touches, demotions, prefetch } = this.#deps;
    // First, since it is in memory.
    if (negative.has(storePathHash)) return KNOWN_ABSENT;
    let row: NarinfoRow | undefined;
    try {
      row = await metadata.findNarinfo(storePathHash);
      if (row === undefined) this.#outage.worked();
    } catch (error) {
      // For example, the database is locked: the upstreams are requested instead.
      const facts = { error: messageOf(error) };
      this.#outage.failed("narinfo lookup failed, querying upstreams", facts);
    }
    // Another request has learned it during the read.
    if (row === undefined && negative.has(storePathHash)) return KNOWN_ABSENT;
    if (row !== undefined && (demotions.none || await this.#isFetchable(row))) {
      touches.narinfo(storePathHash);
      const isFirstOfPrefetch = prefetch.hit(row, { requestId, isHead });
      return { cacheResult: "HIT", text: signer.textOf(row), isFirstOfPrefetch };
    }
    return await this.#fetch({ storePathHash, row, requestId }, isHead);
  }

  async #fetch(request: NarinfoRequest, isHead: boolean): Promise<NarinfoAnswer> {
    const { narinfoFetches, prefetch, rows: { signer }, touches, loops } = this.#deps;
    const { narinfo, isJoined, hasJoinedPrefetch } = await narinfoFetches.fetch(request);
    const cacheResult = isJoined ? "JOINED" : "MISS";
    if (narinfo.kind === "found") {
      const { row } = narinfo;
      // A prefetched narinfo is stored without a use.
      if (hasJoinedPrefetch) touches.narinfo(row.storePathHash);
      const clientRequest = { requestId: request.requestId, isHead };
      const isFirstOfPrefetch = hasJoinedPrefetch && prefetch.hit(row, clientRequest);
      if (!hasJoinedPrefetch && !loops.isPassedOn) {
        prefetch.missed(narinfo, { ...clientRequest, isJoined });
      }
      return { cacheResult, text: signer.textOf(row), isFirstOfPrefetch };
    }
    const { row } = request;
    // A narinfo whose upstream has failed is better than none.
    if (row === undefined) return { cacheResult, text: undefined, isFirstOfPrefetch: false };
    touches.narinfo(row.storePathHash);
    return { cacheResult: "HIT", text: signer.textOf(row), isFirstOfPrefetch: false };
  }

  /** False if every known source of the NAR has failed: the narinfo must be requested again. */
  async #isFetchable(row: NarinfoRow): Promise<boolean> {
    const { rows: { metadata }, demotions } = this.#deps;
    const nar = await metadata.findNar(row.narName);
    if (nar?.kept !== undefined) return true;
    const sources = await metadata.sourcesOf(row.narName);
    return sources.some(({ upstream }) => demotions.get(row.narName, upstream) === undefined);
  }
}
