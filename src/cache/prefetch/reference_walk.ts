import { ownText } from "../../base/own_text.ts";
import type { MetadataStore } from "../../metadata/metadata_store.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { clock } from "../../runtime/current.ts";
import type { SpareUpstreams, UpstreamPool } from "../../upstream/upstream_pool.ts";
import type { NarinfoPrefetcher, NewNarinfo } from "./prefetch_ports.ts";

/** Prefetched narinfos in flight. */
const IN_FLIGHT_MAX = 64;

/** Narinfos of one walk that no client has requested. Each one that a client requests adds one. */
const AHEAD_MAX = 64;

/** Narinfos that one client request may prefetch. */
const PER_REQUEST_MAX = 4_000;

/** A prefetched narinfo counts once more for each of these references. Most have fewer. */
const REFERENCES_PER_COST = 20;

/** References that wait for their turn, of all walks: some 2 MB. */
const WAITING_MAX = 20_000;

/** Prefetched narinfos whose walk a client's request lets go on. */
const UNUSED_MAX = 20_000;

/** Narinfos that are known to be stored, or to be the start of a walk: some 1 MB. */
const STORED_MAX = 10_000;

/** A walk has ended if no client follows it between this many calls of `forget`. */
const ROUNDS_MAX = 6;

/** Checks between two steps, while client requests queue. */
const CLIENTS_FIRST_MS = 20;

export interface ReferenceWalkDeps {
  readonly narinfoFetches: NarinfoPrefetcher;
  readonly metadata: Pick<MetadataStore, "findNarinfo" | "referencesOf">;
  readonly negative: { has(storePathHash: StorePathHash): boolean };
  readonly pool: Pick<UpstreamPool, "spare">;
  /** Called with each narinfo, before a client gets it. */
  readonly came: (storePathHash: StorePathHash) => void;
  readonly count: (result: "failed" | "skipped", amount: number) => void;
}

/** One request of a client. */
interface Walk {
  readonly requestId: string;
  /** The references that wait for their turn, in the order of the walk. */
  readonly waiting: Set<StorePathHash>;
  /** Narinfos that it may prefetch before a client requests another one of its narinfos. */
  ahead: number;
  left: number;
  /** The round in which a client followed it last. */
  round: number;
}

/**
 * Prefetches the narinfos of references, breadth first, in the background, at the pace at which
 * clients request them. It follows new narinfos alone: the references of a known narinfo are
 * usually known too.
 */
export class ReferenceWalk {
  readonly #deps: ReferenceWalkDeps;
  readonly #ended = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** The walk in which each reference waits. */
  readonly #waiting = new Map<StorePathHash, Walk>();
  /** The walks with a next step, in the order of their turns. */
  readonly #ready = new Set<Walk>();
  /** The walk of each prefetched narinfo that no client has requested. */
  readonly #unused = new Map<StorePathHash, Walk>();
  /** Store paths of one closure share references: each look into the metadata costs a row. */
  readonly #stored = new Set<StorePathHash>();
  /** Starts of walks: HEAD and GET of one narinfo are one. */
  readonly #begun = new Set<StorePathHash>();
  #round = 0;
  #inFlight = 0;
  #isStarting = false;

  constructor(deps: ReferenceWalkDeps) {
    this.#deps = deps;
  }

  /** Walks on from the references of a client's narinfo. */
  begin({ row, references }: NewNarinfo, requestId: string): void {
    this.#noteStored(row.storePathHash);
    note(this.#begun, row.storePathHash);
    this.#begin(references, requestId);
  }

  /** The same for a stored narinfo, unless a walk began there of late. */
  async beginAt(storePathHash: StorePathHash, requestId: string): Promise<void> {
    if (this.#begun.has(storePathHash) || this.#begun.size >= STORED_MAX) return;
    note(this.#begun, storePathHash);
    this.#begin(await this.#deps.metadata.referencesOf(storePathHash), requestId);
  }

  /** A client has requested a prefetched narinfo: its walk goes on. */
  followed(storePathHash: StorePathHash): void {
    const walk = this.#unused.get(storePathHash);
    if (walk === undefined) return;
    this.#unused.delete(storePathHash);
    walk.ahead++;
    walk.round = this.#round;
    this.#goOn(walk);
  }

  /**
   * Looks up each narinfo again: eviction may have taken it. Ends walks that no client has followed
   * for some rounds. Call it from time to time.
   */
  forget(): void {
    this.#stored.clear();
    this.#begun.clear();
    this.#round++;
    let skipped = 0;
    for (const [storePathHash, walk] of this.#waiting) {
      if (mayGoOn(walk) || this.#round - walk.round < ROUNDS_MAX) continue;
      this.#waiting.delete(storePathHash);
      walk.waiting.delete(storePathHash);
      skipped++;
    }
    if (skipped > 0) this.#deps.count("skipped", skipped);
  }

  /** Resolves when nothing is in flight, and no walk may go on. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Ends the walks; running requests go on. */
  stop(): void {
    this.#ended.abort();
    this.#drop();
  }

  #begin(references: readonly StorePathHash[], requestId: string): void {
    const walk = {
      requestId,
      waiting: new Set<StorePathHash>(),
      ahead: AHEAD_MAX,
      left: PER_REQUEST_MAX,
      round: this.#round,
    };
    this.#add(references, walk);
  }

  /** Keeps texts of its own: a reference is a part of the narinfo that names it. */
  #add(references: readonly StorePathHash[], walk: Walk): void {
    if (this.#ended.signal.aborted) return;
    let skipped = 0;
    for (const storePathHash of references) {
      if (this.#stored.has(storePathHash)) continue;
      const other = this.#waiting.get(storePathHash);
      // A walk that waits for its clients would keep it from this one's.
      if (other !== undefined && (mayGoOn(other) || !mayGoOn(walk))) continue;
      if (walk.left <= 0 || this.#waiting.size >= WAITING_MAX) {
        skipped++;
        continue;
      }
      other?.waiting.delete(storePathHash);
      const own = ownText(storePathHash);
      walk.waiting.add(own);
      this.#waiting.set(own, walk);
    }
    if (skipped > 0) this.#deps.count("skipped", skipped);
    this.#goOn(walk);
  }

  #goOn(walk: Walk): void {
    if (mayGoOn(walk) && walk.waiting.size > 0) this.#ready.add(walk);
    this.#start();
  }

  /** Starts requests in a turn of its own, so that the answer to the client leaves first. */
  #start(): void {
    if (this.#isStarting || this.#ready.size === 0 || this.#inFlight >= IN_FLIGHT_MAX) return;
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
    while (this.#inFlight < IN_FLIGHT_MAX && this.#ready.size > 0) {
      const spare = this.#deps.pool.spare();
      if (spare === "later") await clock.pause(CLIENTS_FIRST_MS, this.#ended.signal);
      else if (spare.urls.length === 0) this.#skipAll();
      else this.#step(spare);
      if (slice.isOver) await slice.yield();
    }
  }

  /** Takes the next step of the first walk that may go on. */
  #step(spare: SpareUpstreams): void {
    const [walk] = this.#ready;
    if (walk === undefined) return;
    const [storePathHash] = walk.waiting;
    if (storePathHash === undefined || !mayGoOn(walk)) {
      this.#ready.delete(walk);
      return;
    }
    walk.waiting.delete(storePathHash);
    this.#waiting.delete(storePathHash);
    // Before any wait: the others in flight take theirs meanwhile.
    walk.ahead--;
    walk.left--;
    this.#track(this.#take(storePathHash, walk, spare));
  }

  #track(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #take(storePathHash: StorePathHash, walk: Walk, spare: SpareUpstreams): Promise<void> {
    this.#inFlight++;
    try {
      await this.#fetch(storePathHash, walk, spare);
    } finally {
      this.#inFlight--;
      this.#start();
    }
  }

  async #fetch(storePathHash: StorePathHash, walk: Walk, spare: SpareUpstreams): Promise<void> {
    const { narinfoFetches, negative, came, count } = this.#deps;
    const isHere = negative.has(storePathHash) || await this.#isKnown(storePathHash);
    // Checked in the same turn, because a client may have requested it meanwhile.
    if (isHere || narinfoFetches.isInFlight(storePathHash) || this.#ended.signal.aborted) {
      walk.ahead++;
      walk.left++;
      return this.#goOn(walk);
    }
    const { requestId } = walk;
    // A client may join it, and then have it before the next line.
    this.#noteUnused(storePathHash, walk);
    const options = { spare, requestId, came: () => came(storePathHash) };
    const narinfo = await narinfoFetches.prefetch(storePathHash, options);
    if (narinfo.kind !== "found") {
      this.#unused.delete(storePathHash);
      return count("failed", 1);
    }
    this.#noteStored(storePathHash);
    // Each reference is a row: a graph of large narinfos ends the walk sooner.
    walk.left -= Math.floor(narinfo.references.length / REFERENCES_PER_COST);
    this.#add(narinfo.references, walk);
  }

  #noteUnused(storePathHash: StorePathHash, walk: Walk): void {
    this.#unused.delete(storePathHash);
    this.#unused.set(storePathHash, walk);
    const [oldest] = this.#unused.keys();
    if (this.#unused.size > UNUSED_MAX && oldest !== undefined) this.#unused.delete(oldest);
  }

  #noteStored(storePathHash: StorePathHash): void {
    note(this.#stored, storePathHash);
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
    this.#drop();
  }

  #drop(): void {
    for (const [storePathHash, walk] of this.#waiting) walk.waiting.delete(storePathHash);
    this.#waiting.clear();
    this.#ready.clear();
  }
}

function mayGoOn({ ahead, left }: Walk): boolean {
  return ahead > 0 && left > 0;
}

function note(paths: Set<StorePathHash>, storePathHash: StorePathHash): void {
  if (paths.size < STORED_MAX) paths.add(ownText(storePathHash));
}
