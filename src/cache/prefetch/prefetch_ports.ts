import type { NarinfoRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { SpareUpstreams } from "../../upstream/upstream_pool.ts";

/** A client's request for a narinfo. */
export interface ClientNarinfoRequest {
  readonly requestId: string;
  /** True for HEAD: the client does not get the narinfo, and so not the NAR either. */
  readonly isHead: boolean;
}

/** A narinfo that an upstream sent for a client. */
export interface NewNarinfo {
  readonly row: NarinfoRow;
  readonly references: readonly StorePathHash[];
}

/** Watches the narinfo answers. Each call returns at once. */
export interface NarinfoResponseWatcher {
  /** True for the first GET of a prefetched entry, and for each HEAD before it. */
  hit(row: NarinfoRow, request: ClientNarinfoRequest): boolean;
  /** An upstream sent it; `isJoined`: for another client's request. */
  missed(
    narinfo: NewNarinfo,
    request: ClientNarinfoRequest & { readonly isJoined: boolean },
  ): void;
}

/** Watches the NAR requests. Each call returns at once. */
export interface NarRequestWatcher {
  /** Notes a GET. True for the first one of a prefetched entry. */
  requested(narName: NarName): boolean;
  /** True for a prefetched entry before its first GET: a HEAD is no use of a NAR. */
  has(narName: NarName): boolean;
}

/** A prefetched narinfo, or the reason of its absence. */
export type PrefetchedNarinfo =
  | { readonly kind: "found"; readonly references: readonly StorePathHash[] }
  | { readonly kind: "absent" | "unknown" };

export interface PrefetchRequest {
  readonly spare: SpareUpstreams;
  readonly requestId: string;
  /** Called when the narinfo is here, before a client gets it. */
  readonly came: () => void;
}

/** Prefetches narinfos; a later client joins. */
export interface NarinfoPrefetcher {
  /** True while a request for the narinfo runs, for a client or a prefetch. */
  isInFlight(storePathHash: StorePathHash): boolean;
  /** Never rejects. Not while `isInFlight`. */
  prefetch(storePathHash: StorePathHash, request: PrefetchRequest): Promise<PrefetchedNarinfo>;
}

/** Prefetches nothing. */
export const NO_PREFETCH: NarinfoResponseWatcher & NarRequestWatcher = {
  hit: () => false,
  missed: () => undefined,
  requested: () => false,
  has: () => false,
};
