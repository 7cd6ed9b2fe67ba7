import type { NarFinder, NarinfoRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
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

/** A prefetched entry without a request within this time is wasted. */
const WASTED_AFTER_MS = 10 * 60_000;

/** Prefetched names in memory, and as many judged ones. */
const NAMES_MAX = 20_000;

type PrefetchEnd = "used" | "wasted";

interface PrefetchOutcomesDeps {
  readonly nowMs: () => number;
  /** Called once for each name. */
  readonly judged: (end: PrefetchEnd) => void;
}

/** The prefetched entries that no client has requested. */
class PrefetchOutcomes<Name extends string> {
  readonly #deps: PrefetchOutcomesDeps;
  /** The time of each fetch, in that order. */
  readonly #waiting = new Map<Name, number>();
  /** Judged entries, whose first GET is still a hit of its own kind. */
  readonly #judged = new Set<Name>();

  constructor(deps: PrefetchOutcomesDeps) {
    this.#deps = deps;
  }

  add(name: Name): void {
    this.#judged.delete(name);
    this.#waiting.delete(name);
    this.#waiting.set(name, this.#deps.nowMs());
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > NAMES_MAX && oldest !== undefined) this.#waste(oldest);
  }

  /** True for a prefetched entry before its first GET. */
  has(name: Name): boolean {
    return this.#waiting.has(name) || this.#judged.has(name);
  }

  /** True for the first GET of a prefetched entry. */
  requested(name: Name): boolean {
    const atMs = this.#waiting.get(name);
    if (atMs === undefined) return this.#judged.size > 0 && this.#judged.delete(name);
    const isLate = this.#deps.nowMs() - atMs > WASTED_AFTER_MS;
    this.#waiting.delete(name);
    this.#deps.judged(isLate ? "wasted" : "used");
    return true;
  }

  /** The same for a HEAD that is a use of the entry: its first GET is still to come. */
  headRequested(name: Name): boolean {
    const isFirstOfPrefetch = this.requested(name);
    if (isFirstOfPrefetch) this.#keep(name);
    return isFirstOfPrefetch;
  }

  /** Counts entries without a request in time as wasted. */
  expire(): void {
    const sinceMs = this.#deps.nowMs() - WASTED_AFTER_MS;
    for (const [name, atMs] of this.#waiting) {
      if (atMs >= sinceMs) return;
      this.#waste(name);
    }
  }

  #waste(name: Name): void {
    this.#waiting.delete(name);
    this.#keep(name);
    this.#deps.judged("wasted");
  }

  #keep(name: Name): void {
    this.#judged.add(name);
    const [oldest] = this.#judged;
    if (this.#judged.size > NAMES_MAX && oldest !== undefined) this.#judged.delete(oldest);
  }
}

/** NARs that a hit makes larder look for, in each period: some 1 MB of names. */
const LOOKS_MAX = 10_000;

/** A period: a NAR is looked for at most once in it. */
const PERIOD_MS = 60_000;

interface HitLooksDeps {
  readonly metadata: Pick<NarFinder, "findNar">;
  /** Called with each narinfo whose NAR is not here. */
  readonly missing: (row: NarinfoRow, request: LeadingRequest) => Promise<void> | void;
}

/**
 * Finds the hits whose NAR is not here, behind the answer to the client. A hit costs one look into
 * a set of names, however many come.
 */
export class HitLooks {
  readonly #deps: HitLooksDeps;
  readonly #known = new Set<NarName>();
  readonly #waiting: (readonly [NarinfoRow, LeadingRequest])[] = [];
  #running: Promise<void> | undefined;
  #periodEndsAtMs: number | undefined;
  #isStopped = false;

  constructor(deps: HitLooksDeps) {
    this.#deps = deps;
  }

  /** True if this period needs no look for the NAR. */
  knows(narName: NarName): boolean {
    return this.#known.has(narName);
  }

  /** Looks for the NAR of a hit. */
  look(row: NarinfoRow, request: LeadingRequest): void {
    if (this.#isStopped || this.#known.size >= LOOKS_MAX) return;
    this.#known.add(row.narName);
    this.#waiting.push([row, request]);
    this.#running ??= this.#run().finally(() => this.#running = undefined);
  }

  /** The NAR needs no look: it is being fetched. */
  settle(narName: NarName): void {
    if (this.#known.size < LOOKS_MAX) this.#known.add(narName);
  }

  /** An upstream has sent its narinfo anew: the next hit is looked at again. */
  unsettle(narName: NarName): void {
    this.#known.delete(narName);
  }

  /** Begins another period if the last one is over: eviction may have taken NARs. */
  expire(nowMs: number): void {
    const isOver = this.#periodEndsAtMs !== undefined && nowMs >= this.#periodEndsAtMs;
    if (isOver) this.#known.clear();
    if (isOver || this.#periodEndsAtMs === undefined) this.#periodEndsAtMs = nowMs + PERIOD_MS;
  }

  stop(): void {
    this.#isStopped = true;
    this.#waiting.length = 0;
  }

  /** Resolves when no look waits. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    const slice = clock.slice();
    await slice.yield();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const [row, request] = next;
      try {
        const nar = await this.#deps.metadata.findNar(row.narName);
        if (nar !== undefined && nar.kept === undefined) await this.#deps.missing(row, request);
      } catch {
        // A locked database: the client's own requests do without.
      }
      if (slice.isOver) await slice.yield();
    }
  }
}
