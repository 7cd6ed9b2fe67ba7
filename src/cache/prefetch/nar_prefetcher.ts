import type { NarFinder, NarRecord } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { Downloads } from "../download/downloads.ts";
import { announcedFileSize } from "../nar/nar_naming.ts";

/** Prefetched NARs in flight. */
const IN_FLIGHT_MAX = 16;

/** NARs that wait for their turn; the oldest makes room. */
const WAITING_MAX = 1_000;

/** A client that wants NARs requests the first long before. */
const WAITING_MAX_MS = 60_000;

/** The client request that led to a NAR. */
export interface LeadingRequest {
  readonly requestId: string;
  readonly atMs: number;
}

export interface NarPrefetcherDeps {
  readonly metadata: Pick<NarFinder, "findNar" | "sourcesOf">;
  readonly downloads: Pick<Downloads, "has" | "prefetch">;
  readonly pool: Pick<UpstreamPool, "isSpare" | "hasQueue">;
  /** True if a file of this size fits without eviction of recently used entries. */
  readonly hasRoom: (fileSize: number) => Promise<boolean>;
  /** larder prefetches no larger file; 0: none at all. */
  readonly fileBytesMax: number;
  /** Called with each stored NAR that no client has joined. */
  readonly came: (narName: NarName) => void;
  readonly count: (result: "used" | "failed" | "skipped") => void;
}

/** Prefetches small NARs whose narinfo a client has, while clients request such NARs. */
export class NarPrefetcher {
  readonly #deps: NarPrefetcherDeps;
  /** The request of the client that has the narinfo. */
  readonly #waiting = new Map<NarName, LeadingRequest>();
  /** The newest last; some may have ended. */
  #order: NarName[] = [];
  readonly #running = new Set<Promise<void>>();
  #yield = INITIAL_YIELD;
  #inFlight = 0;
  #isStopped = false;
  #isStarting = false;

  constructor(deps: NarPrefetcherDeps) {
    this.#deps = deps;
  }

  /** A client has a narinfo that leads to this NAR. */
  add(narName: NarName, request: LeadingRequest): void {
    if (this.#isStopped || this.#deps.fileBytesMax === 0) return;
    this.#waiting.delete(narName);
    this.#push(narName, request);
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size > WAITING_MAX && oldest !== undefined) this.#skip(oldest);
    this.#start();
  }

  /** A client requests a NAR: it no longer waits here. */
  requested(narName: NarName): void {
    if (this.#waiting.delete(narName)) this.note("wanted");
  }

  /** Notes the result of a prefetched NAR. */
  note(event: YieldEvent): void {
    this.#yield = nextYield(this.#yield, event);
    if (event !== "fetched" && event !== "skipped") this.#start();
  }

  /** Skips NARs that have waited for a minute: another client's requests must not pay for it. */
  expire(nowMs: number): void {
    for (const [narName, { atMs }] of this.#waiting) {
      if (nowMs - atMs > WAITING_MAX_MS) this.#skip(narName);
    }
  }

  /** Ends the prefetching; running downloads go on. */
  stop(): void {
    this.#isStopped = true;
    this.#waiting.clear();
  }

  /** Resolves when nothing is in flight. NARs that wait for a request stay. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #push(narName: NarName, request: LeadingRequest): void {
    this.#waiting.set(narName, request);
    this.#order.push(narName);
    if (this.#order.length > 2 * WAITING_MAX) this.#order = [...this.#waiting.keys()];
  }

  /** Nix fetches the leaves of a closure first, whose narinfos it requested last. */
  #pop(): readonly [NarName, LeadingRequest] | undefined {
    for (;;) {
      const narName = this.#order.pop();
      if (narName === undefined) return undefined;
      const request = this.#waiting.get(narName);
      if (request === undefined) continue;
      this.#waiting.delete(narName);
      return [narName, request];
    }
  }

  /** Starts downloads in a turn of its own, so that the answer to the client leaves first. */
  #start(): void {
    if (this.#isStarting || this.#waiting.size === 0) return;
    // A change of either starts again, so no narinfo pays for a timer in vain.
    if (this.#inFlight >= IN_FLIGHT_MAX || decide(this.#yield) === "wait") return;
    this.#isStarting = true;
    this.#track(
      clock.pause(0).then(() => {
        this.#isStarting = false;
        this.#startAll();
      }),
    );
  }

  #track(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #startAll(): void {
    while (this.#inFlight < IN_FLIGHT_MAX && !this.#isStopped) {
      const next = decide(this.#yield) === "wait" ? undefined : this.#pop();
      if (next === undefined) return;
      this.#inFlight++;
      this.#track(
        this.#take(...next).catch(() => this.#deps.count("failed")).finally(() => {
          this.#inFlight--;
          this.#start();
        }),
      );
    }
  }

  async #take(narName: NarName, request: LeadingRequest): Promise<void> {
    const { metadata, downloads, fileBytesMax, came, count } = this.#deps;
    const nar = await metadata.findNar(narName);
    if (nar === undefined || nar.kept !== undefined) return;
    const fileSize = announcedFileSize(nar) ?? nar.narSize;
    if (fileSize > fileBytesMax) return;
    if (!await this.#isAllowed(nar, fileSize)) return count("skipped");
    const decision = decide(this.#yield);
    if (decision === "wait") return this.#putBack(narName, request);
    if (decision === "skip") {
      this.note("skipped");
      return count("skipped");
    }
    if (this.#isStopped || downloads.has(narName)) return;
    this.note("fetched");
    const { isKept, isJoined } = await downloads.prefetch(nar, request.requestId);
    if (!isKept) {
      this.note("failed");
      return count("failed");
    }
    if (!isJoined) return came(narName);
    count("used");
    this.note("used");
  }

  async #isAllowed({ name }: NarRecord, fileSize: number): Promise<boolean> {
    const { metadata, pool, hasRoom } = this.#deps;
    const sources = await metadata.sourcesOf(name);
    const hasSpare = sources.some(({ upstream }) => (
      pool.isSpare(upstream) && !pool.hasQueue(upstream)
    ));
    return hasSpare && await hasRoom(fileSize);
  }

  /** Another NAR took the credit meanwhile. */
  #putBack(narName: NarName, request: LeadingRequest): void {
    if (!this.#isStopped) this.#push(narName, request);
  }

  #skip(narName: NarName): void {
    this.#waiting.delete(narName);
    this.#deps.count("skipped");
  }
}

/** NARs that larder prefetches before the first NAR request. */
export const INITIAL_NARS = 50;

/** NARs that larder prefetches for each NAR request. */
export const NARS_PER_REQUEST = 4;

/** The last outcomes decide whether prefetching is worth it. */
export const OUTCOMES_MAX = 200;

/** Fewer outcomes decide nothing. */
export const OUTCOMES_MIN = 20;

/** While most are wasted, larder still tries one in this many. */
export const TRIAL_EVERY = 20;

/** The recent use of prefetched NARs. */
interface PrefetchYield {
  /** NARs that may be prefetched before the next NAR request. */
  readonly credit: number;
  /** True for wasted; the newest last. */
  readonly outcomes: readonly boolean[];
  /** NARs skipped since the last trial. */
  readonly skipped: number;
}

export type YieldEvent =
  /** A NAR is prefetched. */
  | "fetched"
  /** Skipped, because most are wasted. */
  | "skipped"
  /** A client requested a prefetched NAR, or one that waits for its prefetch. */
  | "used"
  | "wanted"
  /** No client requested the NAR in time, or no upstream had it. */
  | "wasted"
  | "failed";

export const INITIAL_YIELD: PrefetchYield = { credit: INITIAL_NARS, outcomes: [], skipped: 0 };

/** The only place where the yield changes. */
export function nextYield(now: PrefetchYield, event: YieldEvent): PrefetchYield {
  switch (event) {
    case "fetched":
      return { ...now, credit: Math.max(0, now.credit - 1), skipped: 0 };
    case "skipped":
      return { ...now, skipped: now.skipped + 1 };
    case "wanted":
      return { ...now, credit: creditOf(now, NARS_PER_REQUEST) };
    case "used":
      return { ...judged(now, false), credit: creditOf(now, NARS_PER_REQUEST) };
    case "wasted":
    case "failed":
      return judged(now, true);
  }
}

/** "wait": until the next NAR request. "skip": this NAR is not worth a request. */
export function decide({ credit, outcomes, skipped }: PrefetchYield): "fetch" | "wait" | "skip" {
  if (credit === 0) return "wait";
  const wasted = outcomes.filter((isWasted) => isWasted).length;
  const isMostlyWasted = outcomes.length >= OUTCOMES_MIN && wasted > outcomes.length / 2;
  return isMostlyWasted && skipped < TRIAL_EVERY - 1 ? "skip" : "fetch";
}

function judged(now: PrefetchYield, isWasted: boolean): PrefetchYield {
  return { ...now, outcomes: [...now.outcomes, isWasted].slice(-OUTCOMES_MAX) };
}

function creditOf({ credit }: PrefetchYield, more: number): number {
  return Math.min(INITIAL_NARS, credit + more);
}
