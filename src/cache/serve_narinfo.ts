import { SingleFlight } from "../base/single_flight.ts";
import type { MetadataStore, NarinfoRow } from "../metadata/metadata_store.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Demotions } from "./download/demotions.ts";
import { type Learned, learnNarinfo, type LearnNarinfoDeps } from "./learn_narinfo.ts";
import type { NegativeCache } from "./negative_cache.ts";
import type { Uses } from "./uses.ts";

/** Where an answer came from, as the header X-Cache says it. */
export type Source = "HIT" | "MISS" | "JOINED";

/** `text` is `undefined` when nobody has it. */
export interface NarinfoAnswer {
  readonly source: Source;
  readonly text: string | undefined;
}

export interface NarinfoServerDeps extends LearnNarinfoDeps {
  readonly metadata: MetadataStore;
  readonly negative: NegativeCache;
  readonly demotions: Demotions;
  readonly uses: Uses;
}

/** Answers narinfo requests: from the metadata, from what is known to be absent, else upstream. */
export class NarinfoServer {
  readonly #deps: NarinfoServerDeps;
  readonly #learning = new SingleFlight<StorePathHash, Learned>();

  constructor(deps: NarinfoServerDeps) {
    this.#deps = deps;
  }

  async serve(storePathHash: StorePathHash): Promise<NarinfoAnswer> {
    const { metadata, negative, uses, signer } = this.#deps;
    // First, since it is in memory; what is learned or uploaded is taken out of it.
    if (negative.has(storePathHash)) return { source: "HIT", text: undefined };
    const row = await metadata.findNarinfo(storePathHash);
    if (row !== undefined && (this.#deps.demotions.none || await this.#isFetchable(row))) {
      uses.narinfo(storePathHash);
      return { source: "HIT", text: signer.textOf(row) };
    }
    const { value, joined } = this.#learning.run(
      storePathHash,
      () => this.#learn(row, storePathHash),
    );
    const learned = await value;
    const source = joined ? "JOINED" : "MISS";
    if (learned.kind === "learned") return { source, text: signer.textOf(learned.row) };
    // Better the narinfo whose upstream let us down before than none.
    if (row !== undefined) return { source: "HIT", text: signer.textOf(row) };
    return { source, text: undefined };
  }

  async #learn(row: NarinfoRow | undefined, storePathHash: StorePathHash): Promise<Learned> {
    const except = row === undefined ? undefined : await this.#demoted(row);
    const learned = await learnNarinfo(this.#deps, storePathHash, except);
    if (learned.kind === "absent" && row === undefined) this.#deps.negative.add(storePathHash);
    return learned;
  }

  /** False when every upstream known to have the NAR sent a bad one: others may have a good one. */
  async #isFetchable(row: NarinfoRow): Promise<boolean> {
    const { metadata, demotions } = this.#deps;
    const nar = await metadata.findNar(row.narName);
    if (nar?.kept !== undefined) return true;
    const sources = await metadata.sourcesOf(row.narName);
    return sources.some(({ upstream }) => !demotions.has(row.narName, upstream));
  }

  async #demoted(row: NarinfoRow): Promise<ReadonlySet<string>> {
    const sources = await this.#deps.metadata.sourcesOf(row.narName);
    return new Set(sources.map(({ upstream }) => upstream));
  }
}
