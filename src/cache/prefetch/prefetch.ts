import type { NarinfoRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { type PrefetchEnd, PrefetchOutcomes } from "./prefetch_outcomes.ts";
import { HitLooks } from "./hit_looks.ts";
import { type LeadingRequest, NarPrefetcher, type NarPrefetcherDeps } from "./nar_prefetcher.ts";
import type {
  ClientNarinfoRequest,
  NarinfoResponseWatcher,
  NarRequestWatcher,
  NewNarinfo,
} from "./prefetch_ports.ts";
import { ReferenceWalk, type ReferenceWalkDeps } from "./reference_walk.ts";

/** The longest delay until an entry expires, and a stored narinfo is looked up again. */
const EXPIRE_EVERY_MS = 10_000;

export interface PrefetchDeps {
  readonly narinfos: Omit<ReferenceWalkDeps, "came" | "count">;
  readonly nars: Omit<NarPrefetcherDeps, "came" | "count">;
  readonly metrics: Pick<Metrics, "series">;
  readonly nowMs: () => number;
}

/**
 * Prefetches the usual next requests of a client: narinfos of references, and small NARs of its
 * narinfos. It works in the background. Its failures reach no client.
 */
export class Prefetch implements NarinfoResponseWatcher, NarRequestWatcher, AsyncDisposable {
  readonly #walk: ReferenceWalk;
  readonly #nars: NarPrefetcher;
  readonly #hits: HitLooks;
  readonly #narinfoOutcomes: PrefetchOutcomes<StorePathHash>;
  readonly #narOutcomes: PrefetchOutcomes<NarName>;
  readonly #nowMs: () => number;
  readonly #timer: Timer;

  constructor(deps: PrefetchDeps) {
    const { nowMs, metrics } = deps;
    this.#nowMs = nowMs;
    const series = (kind: "narinfo" | "nar") => {
      const of = (result: "used" | "wasted" | "failed" | "skipped") =>
        metrics.series("prefetch_total", { kind, result });
      return {
        used: of("used"),
        wasted: of("wasted"),
        failed: of("failed"),
        skipped: of("skipped"),
      };
    };
    const [narinfos, nars] = [series("narinfo"), series("nar")];
    this.#narinfoOutcomes = new PrefetchOutcomes({
      nowMs,
      judged: (end) => narinfos[end].count(),
    });
    this.#narOutcomes = new PrefetchOutcomes({
      nowMs,
      judged: (end: PrefetchEnd) => {
        nars[end].count();
        this.#nars.note(end);
      },
    });
    this.#walk = new ReferenceWalk({
      ...deps.narinfos,
      came: (storePathHash) => this.#narinfoOutcomes.add(storePathHash),
      count: (result, amount) => narinfos[result].add(amount),
    });
    this.#nars = new NarPrefetcher({
      ...deps.nars,
      came: (narName) => this.#narOutcomes.add(narName),
      count: (result) => nars[result].count(),
    });
    this.#hits = new HitLooks({
      metadata: deps.nars.metadata,
      missing: async ({ narName, storePathHash }, request) => {
        this.#nars.add(narName, request);
        await this.#walk.beginAt(storePathHash, request.requestId);
      },
    });
    this.#timer = clock.every(EXPIRE_EVERY_MS, () => this.expire());
  }

  hit(row: NarinfoRow, { isHead, requestId }: ClientNarinfoRequest): boolean {
    const { storePathHash, narName } = row;
    // A client that sends HEAD alone has got an answer without an upstream.
    const isFirstOfPrefetch = isHead
      ? this.#narinfoOutcomes.headRequested(storePathHash)
      : this.#narinfoOutcomes.requested(storePathHash);
    if (isFirstOfPrefetch) this.#walk.followed(storePathHash);
    if (isHead) return isFirstOfPrefetch;
    if (isFirstOfPrefetch) this.#addNar(narName, requestId);
    else if (!this.#hits.knows(narName)) this.#hits.look(row, this.#leading(requestId));
    return isFirstOfPrefetch;
  }

  missed(
    narinfo: NewNarinfo,
    { isHead, requestId, isJoined }: ClientNarinfoRequest & { readonly isJoined: boolean },
  ): void {
    if (!isJoined) this.#walk.begin(narinfo, requestId);
    if (isHead) this.#hits.unsettle(narinfo.row.narName);
    else this.#addNar(narinfo.row.narName, requestId);
  }

  has(narName: NarName): boolean {
    return this.#narOutcomes.has(narName);
  }

  requested(narName: NarName): boolean {
    this.#nars.requested(narName);
    return this.#narOutcomes.requested(narName);
  }

  /** Counts entries without a request in time as wasted, and skips NARs that waited too long. */
  expire(): void {
    this.#narinfoOutcomes.expire();
    this.#narOutcomes.expire();
    this.#nars.expire(this.#nowMs());
    this.#hits.expire(this.#nowMs());
    this.#walk.forget();
  }

  /** Ends the prefetching; running requests go on. */
  stop(): void {
    this.#timer.cancel();
    this.#hits.stop();
    this.#walk.stop();
    this.#nars.stop();
  }

  /** Resolves when nothing is in flight. */
  async idle(): Promise<void> {
    await this.#hits.idle();
    await this.#walk.idle();
    await this.#nars.idle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.idle();
  }

  #addNar(narName: NarName, requestId: string): void {
    this.#hits.settle(narName);
    this.#nars.add(narName, this.#leading(requestId));
  }

  #leading(requestId: string): LeadingRequest {
    return { requestId, atMs: this.#nowMs() };
  }
}
