import type { NarFinder, NarinfoRow } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { LeadingRequest } from "./nar_prefetcher.ts";

/** NARs that a hit makes larder look for, in each period: some 1 MB of names. */
const LOOKS_MAX = 10_000;

/** A period: a NAR is looked for at most once in it. */
const PERIOD_MS = 60_000;

export interface HitLooksDeps {
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
