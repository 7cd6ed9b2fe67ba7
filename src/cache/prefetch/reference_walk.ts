import { ownText } from "../../base/own_text.ts";
import type { NarinfoFinder } from "../../metadata/metadata_store.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { SpareUpstreams, UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { NarinfoPrefetcher, NewNarinfo } from "./prefetch_ports.ts";

/** Prefetched narinfos in flight. */
const IN_FLIGHT_MAX = 64;

/** Narinfos that one client request may prefetch. */
const PER_REQUEST_MAX = 4_000;

/** References that wait for their turn, of all walks: some 2 MB. */
const WAITING_MAX = 20_000;

/** Narinfos that are known to be stored: some 1 MB. */
const STORED_MAX = 10_000;

/** Checks between two steps, while client requests queue. */
const CLIENTS_FIRST_MS = 20;

export interface ReferenceWalkDeps {
  readonly narinfoFetches: NarinfoPrefetcher;
  readonly metadata: NarinfoFinder;
  readonly negative: { has(storePathHash: StorePathHash): boolean };
  readonly pool: Pick<UpstreamPool, "spare">;
  /** Called with each narinfo, before a client gets it. */
  readonly came: (storePathHash: StorePathHash) => void;
  readonly count: (result: "failed" | "skipped", amount: number) => void;
}

/** One request of a client. */
interface Walk {
  readonly requestId: string;
  left: number;
}

interface Step {
  readonly storePathHash: StorePathHash;
  readonly walk: Walk;
}

/**
 * Prefetches the narinfos of references, breadth first, in the background. It follows new narinfos
 * alone: the references of a known narinfo are usually known too.
 */
export class ReferenceWalk {
  readonly #deps: ReferenceWalkDeps;
  readonly #ended = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #waiting = new Map<StorePathHash, Step>();
  /** Store paths of one closure share references: each look into the metadata costs a row. */
  readonly #stored = new Set<StorePathHash>();
  #inFlight = 0;
  #isStarting = false;

  constructor(deps: ReferenceWalkDeps) {
    this.#deps = deps;
  }

  /** Walks on from the references of a client's narinfo. */
  begin({ row, references }: NewNarinfo, requestId: string): void {
    this.#noteStored(row.storePathHash);
    this.#add(references, { requestId, left: PER_REQUEST_MAX });
  }

  /** Looks up each narinfo again: eviction may have taken it. */
  forget(): void {
    this.#stored.clear();
  }

  /** Resolves when nothing is in flight or waits. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Ends the walk; running requests go on. */
  stop(): void {
    this.#ended.abort();
    this.#waiting.clear();
  }

  #add(references: readonly StorePathHash[], walk: Walk): void {
    if (this.#ended.signal.aborted) return;
    let skipped = 0;
    for (const storePathHash of references) {
      if (this.#waiting.has(storePathHash) || this.#stored.has(storePathHash)) continue;
      if (walk.left > 0 && this.#waiting.size < WAITING_MAX) {
        this.#waiting.set(storePathHash, { storePathHash, walk });
      } else skipped++;
    }
    if (skipped > 0) this.#deps.count("skipped", skipped);
    this.#start();
  }

  /** Starts requests in a turn of its own, so that the answer to the client leaves first. */
  #start(): void {
    if (this.#isStarting || this.#waiting.size === 0 || this.#inFlight >= IN_FLIGHT_MAX) return;
    this.#isStarting = true;
    this.#track(
      this.#startAll().finally(() => {
        this.#isStarting = false;
        this.#start();
      }),
    );
  }

  async #startAll(): Promise<void> {
    const slice = clock.slice();
    await slice.yield();
    while (this.#inFlight < IN_FLIGHT_MAX) {
      const [step] = this.#waiting.values();
      if (step === undefined) return;
      const spare = this.#deps.pool.spare();
      if (spare === "later") await clock.pause(CLIENTS_FIRST_MS, this.#ended.signal);
      else if (spare.urls.length === 0) this.#skipAll();
      else this.#track(this.#take(step, spare));
      if (slice.isOver) await slice.yield();
    }
  }

  #track(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #take(step: Step, spare: SpareUpstreams): Promise<void> {
    this.#inFlight++;
    this.#waiting.delete(step.storePathHash);
    try {
      await this.#fetch(step, spare);
    } finally {
      this.#inFlight--;
      this.#start();
    }
  }

  async #fetch({ storePathHash, walk }: Step, spare: SpareUpstreams): Promise<void> {
    const { narinfoFetches, negative, came, count } = this.#deps;
    if (walk.left <= 0) return count("skipped", 1);
    // Before the wait: the others in flight take theirs meanwhile.
    walk.left--;
    const isHere = negative.has(storePathHash) || await this.#isKnown(storePathHash);
    // Checked in the same turn, because a client may have requested it meanwhile.
    if (isHere || narinfoFetches.isInFlight(storePathHash) || this.#ended.signal.aborted) {
      walk.left++;
      return;
    }
    const { requestId } = walk;
    const options = { spare, requestId, came: () => came(storePathHash) };
    const narinfo = await narinfoFetches.prefetch(storePathHash, options);
    if (narinfo.kind !== "found") return count("failed", 1);
    this.#noteStored(storePathHash);
    this.#add(narinfo.references, walk);
  }

  #noteStored(storePathHash: StorePathHash): void {
    // A reference is a part of the narinfo that names it.
    if (this.#stored.size < STORED_MAX) this.#stored.add(ownText(storePathHash));
  }

  /** True also if the metadata cannot be read. */
  async #isKnown(storePathHash: StorePathHash): Promise<boolean> {
    try {
      const row = await this.#deps.metadata.findNarinfo(storePathHash);
      if (row !== undefined) this.#noteStored(storePathHash);
      return row !== undefined;
    } catch {
      return true;
    }
  }

  /** No upstream has capacity to spare. */
  #skipAll(): void {
    this.#deps.count("skipped", this.#waiting.size);
    this.#waiting.clear();
  }
}
