import { messageOf } from "../base/failure.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import type { NarinfoReading, NarinfoSource } from "./upstream.ts";

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

export interface UpstreamPoolDeps {
  /** In the order in which the operator gave them. */
  readonly upstreams: readonly NarinfoSource[];
  /** Told of every reading, for logs and health. */
  readonly observe: (upstream: string, reading: NarinfoReading) => void;
}

interface Asked {
  readonly order: number;
  readonly upstream: NarinfoSource;
  priority: number | undefined;
  reading: NarinfoReading | undefined;
}

/** All upstreams, asked side by side. */
export class UpstreamPool {
  readonly #deps: UpstreamPoolDeps;

  constructor(deps: UpstreamPoolDeps) {
    this.#deps = deps;
  }

  /**
   * Asks every upstream but those of `except` for a narinfo. The best valid offer wins, by
   * priority, then by order; it is chosen as soon as no answer still to come could beat it.
   */
  narinfo(storePathHash: StorePathHash, except?: ReadonlySet<string>): Promise<PoolAnswer> {
    const asked: Asked[] = this.#deps.upstreams
      .filter(({ url }) => !except?.has(url))
      .map((upstream, order) => ({ order, upstream, priority: undefined, reading: undefined }));
    const abort = new AbortController();
    return new Promise((resolve) => {
      const look = () => {
        const answer = decide(asked);
        if (answer === undefined) return;
        resolve(answer);
        if (asked.some(({ reading }) => reading === undefined)) abort.abort();
      };
      for (const one of asked) {
        one.upstream.priority().catch(() => Infinity).then((priority) => {
          one.priority = priority;
          look();
        });
        one.upstream.narinfo(storePathHash, abort.signal).catch(unexpected).then((reading) => {
          // What we ended ourselves says nothing about the upstream.
          if (abort.signal.aborted) return;
          one.reading = reading;
          this.#deps.observe(one.upstream.url, reading);
          look();
        });
      }
      look();
    });
  }

  /** URLs of the upstreams in order of preference. */
  async order(): Promise<readonly string[]> {
    const priorities = await Promise.all(this.#deps.upstreams.map((one) => one.priority()));
    return this.#deps.upstreams
      .map(({ url }, order) => ({ url, order, priority: priorities[order] ?? Infinity }))
      .sort((a, b) => a.priority - b.priority || a.order - b.order)
      .map(({ url }) => url);
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
    return [{ asked: one, offer: { upstream: one.upstream.url, narinfo, trusted } }];
  });
  const waiting = asked.filter(({ reading }) => reading === undefined);
  if (offers.length === 0) {
    if (waiting.length > 0) return undefined;
    const failed = asked.length === 0 || asked.some(({ reading }) => reading?.kind === "failed");
    return { kind: failed ? "unknown" : "absent" };
  }
  if (offers.length + waiting.length > 1) {
    const rivals = [...offers.map((found) => found.asked), ...waiting];
    if (rivals.some(({ priority }) => priority === undefined)) return undefined;
    offers.sort((a, b) => preference(a.asked, b.asked));
  }
  const [best, ...others] = offers;
  if (best === undefined || waiting.some((one) => preference(one, best.asked) < 0)) {
    return undefined;
  }
  return { kind: "found", best: best.offer, others: others.map(({ offer }) => offer) };
}

function preference(a: Asked, b: Asked): number {
  return (a.priority ?? Infinity) - (b.priority ?? Infinity) || a.order - b.order;
}
