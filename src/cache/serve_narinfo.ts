import type { CacheResult } from "./nar/cache_result.ts";
import { messageOf } from "../base/failure.ts";
import { SingleFlight } from "../base/single_flight.ts";
import type { MetadataStore, NarinfoRow } from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type OutageLine, OutageLog } from "../telemetry/outage_log.ts";
import type { Demotions } from "./sources/demotions.ts";
import { type Learned, learnNarinfo, type LearnNarinfoDeps } from "./learn_narinfo.ts";
import type { NegativeCache } from "./negative_cache.ts";
import type { Uses } from "./uses.ts";

const NOT_READ: OutageLine = {
  level: "error",
  message: "narinfos cannot be read: upstreams are asked for each",
};

/** `text` is `undefined` when nobody has it. */
export interface NarinfoAnswer {
  readonly source: CacheResult;
  readonly text: string | undefined;
}

export interface NarinfoServerDeps {
  readonly learning: LearnNarinfoDeps & { readonly metadata: MetadataStore };
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly uses: Uses;
  readonly log: Logger;
}

/** Answers narinfo requests: from the metadata, from what is known to be absent, else upstream. */
export class NarinfoServer {
  readonly #deps: NarinfoServerDeps;
  readonly #learning = new SingleFlight<StorePathHash, Learned>();
  readonly #outage: OutageLog;

  constructor(deps: NarinfoServerDeps) {
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "narinfos can be read again");
  }

  async serve(storePathHash: StorePathHash, requestId: string): Promise<NarinfoAnswer> {
    const { negative, uses, demotions, learning: { metadata, signer } } = this.#deps;
    // First, since it is in memory.
    if (negative.has(storePathHash)) return { source: "HIT", text: undefined };
    let row: NarinfoRow | undefined;
    try {
      row = await metadata.findNarinfo(storePathHash);
      if (row === undefined) this.#outage.worked();
    } catch (error) {
      // The database is locked, say: then it is for the upstreams to tell.
      this.#outage.failed(NOT_READ, { error: messageOf(error) });
    }
    if (row !== undefined && (demotions.none || await this.#isFetchable(row))) {
      uses.narinfo(storePathHash);
      return { source: "HIT", text: signer.textOf(row) };
    }
    const { value, joined } = this.#learning.run(
      storePathHash,
      () => this.#learn(row, storePathHash, requestId),
    );
    const learned = await value;
    const source = joined ? "JOINED" : "MISS";
    if (learned.kind === "learned") return { source, text: signer.textOf(learned.row) };
    // Better the narinfo whose upstream let us down before than none.
    if (row !== undefined) return { source: "HIT", text: signer.textOf(row) };
    return { source, text: undefined };
  }

  async #learn(
    row: NarinfoRow | undefined,
    storePathHash: StorePathHash,
    requestId: string,
  ): Promise<Learned> {
    const { demotions, negative, learning } = this.#deps;
    if (row !== undefined) await this.#demoteSources(row);
    const except = demotions.ofPath(storePathHash);
    if (except.size > 0) {
      // File hash and size are not signed: it may have been their narinfos that were bad.
      const learned = await learnNarinfo(learning, storePathHash, { requestId, except });
      if (learned.kind === "learned") return learned;
      if (learned.kind === "unknown") this.#listen(learned.later, requestId);
      demotions.forgivePath(storePathHash);
    }
    const { clearings } = negative;
    const learned = await learnNarinfo(learning, storePathHash, { requestId });
    const note = ({ kind }: Learned) => {
      if (row === undefined && kind === "absent") negative.add(storePathHash, clearings);
    };
    note(learned);
    if (learned.kind === "unknown") this.#listen(learned.later?.then(note), requestId);
    return learned;
  }

  /** The upstreams that let us down with the file of a narinfo are asked for that path last. */
  async #demoteSources({ narName, storePathHash }: NarinfoRow): Promise<void> {
    const { learning: { metadata }, demotions } = this.#deps;
    for (const { upstream } of await metadata.sourcesOf(narName)) {
      const how = demotions.get(narName, upstream);
      if (how === undefined) continue;
      demotions.addPath(storePathHash, upstream, how);
      if (how === "missing") demotions.forgive(narName, upstream);
    }
  }

  /** Nobody waits for it: whoever asks next finds it kept. */
  #listen(later: Promise<unknown> | undefined, request_id: string): void {
    later?.catch((error) => {
      this.#deps.log.warn("narinfo not kept", { error: messageOf(error), request_id });
    });
  }

  /** False when every upstream known to have the NAR let us down: ask for the narinfo again. */
  async #isFetchable(row: NarinfoRow): Promise<boolean> {
    const { learning: { metadata }, demotions } = this.#deps;
    const nar = await metadata.findNar(row.narName);
    if (nar?.kept !== undefined) return true;
    const sources = await metadata.sourcesOf(row.narName);
    return sources.some(({ upstream }) => demotions.get(row.narName, upstream) === undefined);
  }
}
