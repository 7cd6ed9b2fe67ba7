import { messageOf } from "../base/failure.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import { Standing } from "./standing.ts";
import type { NarinfoReading, NarinfoSource, Silence } from "./upstream.ts";

/** A narinfo as one upstream has it. */
export interface Offer {
  readonly upstream: string;
  readonly narinfo: Narinfo;
  readonly trusted: boolean;
}

/** What the upstreams say together. */
export type PoolAnswer =
  /** `others` are the further valid offers that were there when the best was chosen. */
  | { readonly kind: "found"; readonly best: Offer; readonly others: readonly Offer[] }
  /** Every upstream that was asked said so. */
  | { readonly kind: "absent" }
  /** Nobody has it, and at least one could not tell. */
  | { readonly kind: "unknown" };

/** An upstream as it stands. */
export interface UpstreamStanding {
  readonly url: string;
  readonly isUp: boolean;
  /** `undefined` until it is known. */
  readonly priority: number | undefined;
}

export interface UpstreamPoolDeps {
  /** In the order in which the operator gave them. */
  readonly upstreams: readonly NarinfoSource[];
  /** Told of every reading, for logs and counts. */
  readonly observe: (upstream: string, reading: NarinfoReading, requestId: string) => void;
  /** Told when an upstream goes down, and when it is up again. */
  readonly changed: (upstream: string, isDown: boolean) => void;
}

export interface AskOptions {
  /** Of the request that asks; for the log. */
  readonly requestId: string;
  /** Upstreams that are not asked, by URL. */
  readonly except?: ReadonlySet<string> | undefined;
}

interface Asked {
  readonly order: number;
  readonly standing: Standing;
  reading: NarinfoReading | undefined;
}

/** All upstreams, asked side by side. */
export class UpstreamPool implements Disposable {
  readonly #deps: UpstreamPoolDeps;
  readonly #standings: readonly Standing[];

  constructor(deps: UpstreamPoolDeps) {
    this.#deps = deps;
    this.#standings = deps.upstreams.map((source) =>
      new Standing(source, (isDown) => deps.changed(source.url, isDown))
    );
  }

  /**
   * Asks every upstream that is up for a narinfo. The best valid offer wins, by priority, then by
   * order; it is chosen as soon as no answer still to come could beat it.
   */
  narinfo(
    storePathHash: StorePathHash,
    { requestId, except }: AskOptions,
  ): Promise<PoolAnswer> {
    const asked: Asked[] = this.#standings
      .filter(({ isDown, source }) => !isDown && !except?.has(source.url))
      .map((standing, order) => ({ order, standing, reading: undefined }));
    const abort = new AbortController();
    return new Promise((resolve) => {
      const look = () => {
        const answer = decide(asked);
        if (answer === undefined) return;
        resolve(answer);
        if (asked.some(({ reading }) => reading === undefined)) abort.abort();
      };
      for (const one of asked) {
        const { standing } = one;
        standing.known().then(look);
        const answer = standing.source.narinfo(storePathHash, abort.signal).catch(unexpected);
        standing.count(answer, abort.signal).then((reading) => {
          // What we ended ourselves says nothing about the upstream.
          if (abort.signal.aborted) return;
          one.reading = reading;
          this.#deps.observe(standing.source.url, reading, requestId);
          look();
        });
      }
      look();
    });
  }

  /** How many upstreams are up. */
  get healthyCount(): number {
    return this.#standings.filter(({ isDown }) => !isDown).length;
  }

  /** In the order in which the operator gave them. */
  standings(): readonly UpstreamStanding[] {
    return this.#standings.map(({ source: { url }, isDown, priority }) => {
      return { url, isUp: !isDown, priority };
    });
  }

  /** URLs of the upstreams in order of preference; those that are down come last. */
  order(): readonly string[] {
    return this.#standings
      .map((standing, order) => ({ standing, order }))
      .sort((a, b) => Number(a.standing.isDown) - Number(b.standing.isDown) || preference(a, b))
      .map(({ standing }) => standing.source.url);
  }

  isDown(upstream: string): boolean {
    return this.#find(upstream)?.isDown ?? false;
  }

  /** True when it is down, and whoever asks it all the same waits for a timeout. */
  isSilent(upstream: string): boolean {
    return this.#find(upstream)?.isSilent ?? false;
  }

  /** Tells the pool what it did not see itself: that an upstream answered, or why not. */
  note(upstream: string, silence: Silence | undefined): void {
    this.#find(upstream)?.note(silence);
  }

  /** Finds out in the background which upstreams are down, before somebody has to wait for one. */
  start(): void {
    for (const standing of this.#standings) standing.lookAtStart();
  }

  [Symbol.dispose](): void {
    for (const standing of this.#standings) standing[Symbol.dispose]();
  }

  #find(upstream: string): Standing | undefined {
    return this.#standings.find(({ source }) => source.url === upstream);
  }
}

/** A bug in reading an answer must not take the answers of the others with it. */
function unexpected(error: unknown): NarinfoReading {
  return { kind: "failed", reason: "garbage", detail: messageOf(error) };
}

/** `undefined` while an answer to come could still change the outcome. */
function decide(asked: readonly Asked[]): PoolAnswer | undefined {
  const offers = asked.flatMap((one) => {
    if (one.reading?.kind !== "found") return [];
    const { narinfo, trusted } = one.reading;
    return [{ asked: one, offer: { upstream: one.standing.source.url, narinfo, trusted } }];
  });
  const waiting = asked.filter(({ reading }) => reading === undefined);
  if (offers.length === 0) {
    if (waiting.length > 0) return undefined;
    const failed = asked.length === 0 || asked.some(({ reading }) => reading?.kind === "failed");
    return { kind: failed ? "unknown" : "absent" };
  }
  if (offers.length + waiting.length > 1) {
    const rivals = [...offers.map((found) => found.asked), ...waiting];
    if (rivals.some(({ standing }) => standing.priority === undefined)) return undefined;
    offers.sort((a, b) => preference(a.asked, b.asked));
  }
  const [best, ...others] = offers;
  if (best === undefined || waiting.some((one) => preference(one, best.asked) < 0)) {
    return undefined;
  }
  return { kind: "found", best: best.offer, others: others.map(({ offer }) => offer) };
}

function preference(a: Omit<Asked, "reading">, b: Omit<Asked, "reading">): number {
  const difference = (a.standing.priority ?? Infinity) - (b.standing.priority ?? Infinity);
  return (difference || 0) || a.order - b.order;
}
