import { messageOf } from "../base/failure.ts";
import { SingleFlight } from "../base/single_flight.ts";
import type { Turns } from "../locks/turns.ts";
import type { MetadataStore, NarinfoRow } from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Logger } from "../telemetry/logger.ts";
import {
  type Learned,
  learnNarinfo,
  type LearnNarinfoDeps,
  prefetchNarinfo,
  storedNarinfo,
} from "./learn_narinfo.ts";
import type { NegativeCache } from "./negative_cache.ts";
import type { NarinfoPrefetcher, PrefetchRequest } from "./prefetch/prefetch_ports.ts";
import type { Demotions } from "./sources/demotions.ts";

/** How long other members wait for a database that is slow to take a narinfo. */
const LANDING_MAX_MS = 2_000;

/** Memory of paths that upstreams lack, and of upstreams that failed to send a NAR. */
export interface UpstreamMemory {
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
}

export interface NarinfoLearnerDeps extends LearnNarinfoDeps {
  readonly metadata: Pick<
    MetadataStore,
    "sourcesOf" | "apply" | "findNar" | "findNarinfo" | "narinfoLanded" | "referencesOf"
  >;
  readonly memory: UpstreamMemory;
  /** Default: there are no other members. */
  readonly turns?: Pick<Turns, "narinfo"> | undefined;
  readonly log: Logger;
}

/** A client's request for a narinfo. */
export interface NarinfoRequest {
  readonly storePathHash: StorePathHash;
  /** The row whose upstreams have all failed, if there is one. */
  readonly row: NarinfoRow | undefined;
  readonly requestId: string;
}

export interface ClientLearned {
  readonly learned: Learned;
  readonly isJoined: boolean;
  /** True if the request joined a prefetch. */
  readonly isPrefetched: boolean;
}

/** A prefetch: no client waited for it at its start. */
interface PrefetchInFlight {
  readonly learned: Promise<Learned>;
  /** True if it covers the upstreams of a client's request. */
  readonly isComplete: boolean;
  /** Count of the negative cache's clearings, as the request began. */
  readonly clearings: number;
}

/** Requests narinfos from upstreams, once for all simultaneous requests of one store path. */
export class NarinfoLearner implements NarinfoPrefetcher {
  readonly #deps: NarinfoLearnerDeps;
  readonly #learning = new SingleFlight<StorePathHash, Learned>();
  readonly #prefetches = new Map<StorePathHash, PrefetchInFlight>();

  constructor(deps: NarinfoLearnerDeps) {
    this.#deps = deps;
  }

  async learn(request: NarinfoRequest): Promise<ClientLearned> {
    const { storePathHash, row } = request;
    const prefetch = this.#prefetches.get(storePathHash);
    if (prefetch !== undefined && row === undefined) {
      const learned = await prefetch.learned;
      const isAbsent = learned.kind === "absent" && prefetch.isComplete;
      if (isAbsent) this.#deps.memory.negative.add(storePathHash, prefetch.clearings);
      if (isAbsent || learned.kind === "learned") {
        return { learned, isJoined: true, isPrefetched: true };
      }
    }
    const { value, joined } = this.#learning.run(storePathHash, () => this.#learnInTurn(request));
    return { learned: await value, isJoined: joined, isPrefetched: false };
  }

  /** True while a request for the narinfo runs. */
  isLearning(storePathHash: StorePathHash): boolean {
    return this.#prefetches.has(storePathHash) || this.#learning.has(storePathHash);
  }

  /**
   * Prefetches a narinfo; a later client joins. `came` is called before that client gets it. Never
   * rejects. Not while `isLearning`.
   */
  async prefetch(
    storePathHash: StorePathHash,
    { spare, requestId, came }: PrefetchRequest,
  ): Promise<Learned> {
    const ask = () => prefetchNarinfo(this.#deps, storePathHash, { spare, requestId });
    const learned = this.#inTurn(storePathHash, ask)
      .catch((error): Learned => {
        const facts = { error: messageOf(error), request_id: requestId };
        this.#deps.log.debug("narinfo not kept", facts);
        return { kind: "unknown" };
      })
      .then((outcome) => {
        this.#prefetches.delete(storePathHash);
        if (outcome.kind === "learned") came();
        return outcome;
      });
    const { clearings } = this.#deps.memory.negative;
    this.#prefetches.set(storePathHash, { learned, isComplete: spare.isComplete, clearings });
    return await learned;
  }

  #learnInTurn(request: NarinfoRequest): Promise<Learned> {
    const ask = () => this.#learn(request);
    // The other members have this row, too: its sources have failed here alone.
    return request.row === undefined ? this.#inTurn(request.storePathHash, ask) : ask();
  }

  /** Asks upstreams, unless another member has stored their answer meanwhile. */
  async #inTurn(storePathHash: StorePathHash, ask: () => Promise<Learned>): Promise<Learned> {
    const { metadata, turns } = this.#deps;
    if (turns === undefined) return await ask();
    let stored: Learned | undefined;
    const turn = await turns.narinfo(storePathHash, async () => {
      // An unreadable database counts as one without the narinfo.
      stored = await storedNarinfo(metadata, storePathHash).catch(() => undefined);
      return stored !== undefined;
    });
    try {
      return stored ?? await ask();
    } finally {
      // A member with the next turn must find the narinfo.
      const landing = metadata.narinfoLanded?.(storePathHash, LANDING_MAX_MS);
      if (landing === undefined) await turn[Symbol.asyncDispose]();
      else void landing.then(() => turn[Symbol.asyncDispose]());
    }
  }

  async #learn({ row, storePathHash, requestId }: NarinfoRequest): Promise<Learned> {
    const { demotions, negative } = this.#deps.memory;
    if (row !== undefined) await this.#demoteSources(row);
    const except = demotions.ofPath(storePathHash);
    if (except.size > 0) {
      // File hash and size are not signed: it may have been their narinfos that were bad.
      const learned = await learnNarinfo(this.#deps, storePathHash, { requestId, except });
      if (learned.kind === "learned") return learned;
      if (learned.kind === "unknown") this.#listen(learned.later, requestId);
      demotions.forgivePath(storePathHash);
    }
    const { clearings } = negative;
    const learned = await learnNarinfo(this.#deps, storePathHash, { requestId });
    const note = ({ kind }: Learned) => {
      if (row === undefined && kind === "absent") negative.add(storePathHash, clearings);
    };
    note(learned);
    if (learned.kind === "unknown") this.#listen(learned.later?.then(note), requestId);
    return learned;
  }

  /** Demotes the upstreams that failed to send the narinfo's file: they come last for the path. */
  async #demoteSources({ narName, storePathHash }: NarinfoRow): Promise<void> {
    const { metadata, memory: { demotions } } = this.#deps;
    for (const { upstream } of await metadata.sourcesOf(narName)) {
      const how = demotions.get(narName, upstream);
      if (how === undefined) continue;
      demotions.addPath(storePathHash, upstream, how);
      if (how === "missing") demotions.forgive(narName, upstream);
    }
  }

  /** Works without a client; the next request finds the narinfo stored. */
  #listen(later: Promise<unknown> | undefined, request_id: string): void {
    later?.catch((error) => {
      this.#deps.log.warn("narinfo not kept", { error: messageOf(error), request_id });
    });
  }
}
