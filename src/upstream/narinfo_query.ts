import { messageOf } from "../base/failure.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import type { OwnSignature } from "../nix/sign_narinfo.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import type { PooledUpstream } from "./pooled_upstream.ts";
import {
  type NarinfoReading,
  noAnswerReasonOf,
  type QueuedReading,
  type RequestRank,
} from "./upstream.ts";
import type { UpstreamWait } from "./upstream_health.ts";

/**
 * The wait for an upstream without an answer or a connection. A standstill of this thread counts
 * little: an answer may have come that nobody has read. With none reachable, an unknown path
 * is a 404 within a second.
 */
const UNREACHED_WAIT_MS = 800;

/** One upstream's narinfo. */
export interface Offer {
  readonly upstream: string;
  readonly narinfo: Narinfo;
  readonly trusted: boolean;
  /** larder's signature, if the Worker made one while verifying. */
  readonly ownSignature?: OwnSignature;
}

/** The answer of all upstreams together. */
export type PoolAnswer =
  /** `others`: the further valid offers at that time. */
  | { readonly kind: "found"; readonly best: Offer; readonly others: readonly Offer[] }
  /** Every upstream said so. */
  | { readonly kind: "absent" }
  /** No offer, and at least one upstream could not tell. `later`: while requests are in flight. */
  | { readonly kind: "unknown"; readonly later?: Promise<PoolAnswer> };

/** A request to one upstream, and its answer. */
interface Candidate {
  readonly order: number;
  readonly upstream: PooledUpstream;
  /** How long it was worth waiting for as the query began; "full" once a connection stands. */
  wait: UpstreamWait;
  reading: QueuedReading | undefined;
}

type Ranked = Pick<Candidate, "order" | "upstream">;

export interface NarinfoQueryOptions {
  readonly rank: RequestRank;
  /** True: requests go on after their clients have left, for the upstream's health. */
  readonly mayGoOn: boolean;
  /** Called with every answer. */
  readonly observe: (upstream: string, reading: NarinfoReading) => void;
}

/** The requests for one narinfo to several upstreams, side by side. */
export class NarinfoQuery implements Disposable {
  readonly #candidates: readonly Candidate[];
  readonly #options: NarinfoQueryOptions;
  readonly #abort = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  readonly #answer = Promise.withResolvers<PoolAnswer>();
  #later: PromiseWithResolvers<PoolAnswer> | undefined;
  #phase: "waiting" | "overdue" | "answered" = "waiting";

  constructor(upstreams: readonly PooledUpstream[], options: NarinfoQueryOptions) {
    this.#candidates = upstreams.map((upstream, order) => (
      { order, upstream, wait: upstream.waitOf("narinfo"), reading: undefined }
    ));
    this.#options = options;
  }

  /** Resolves when no request is in flight any more. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Call it once. */
  ask(storePathHash: StorePathHash): Promise<PoolAnswer> {
    for (const candidate of this.#candidates) {
      const { upstream, wait } = candidate;
      upstream.known()?.then(() => this.#answerIfDecided());
      if (wait !== "full") {
        upstream.reached().then((isReached) => candidate.wait = isReached ? "full" : "short");
      }
      void this.#ask(candidate, storePathHash);
    }
    if (this.#candidates.some(({ wait }) => wait !== "full")) this.#endWaitLater();
    if (this.#candidates.length === 0) this.#answerIfDecided();
    return this.#answer.promise;
  }

  /** Ends the requests in flight. */
  [Symbol.dispose](): void {
    this.#abort.abort();
    this.#answer.resolve({ kind: "unknown" });
    this.#later?.resolve({ kind: "unknown" });
    this.#ended.resolve();
  }

  async #ask(candidate: Candidate, storePathHash: StorePathHash): Promise<void> {
    const { signal } = this.#abort;
    const { source } = candidate.upstream;
    const { rank } = this.#options;
    const reading = await source.narinfo(storePathHash, signal, rank).catch(unexpected);
    // An answer to a request that larder ended says nothing about the upstream.
    if (signal.aborted) return;
    candidate.reading = reading;
    if (reading.kind !== "queue-timeout") {
      this.#options.observe(source.url, reading);
      const reason = noAnswerReasonOf(reading);
      // Many of them at a time would make an upstream down that has failed no client.
      if (rank === "client" || reason === undefined) candidate.upstream.note("narinfo", reason);
    }
    this.#answerIfDecided();
  }

  #endWaitLater(): void {
    const wait = clock.countdown(UNREACHED_WAIT_MS, () => {
      if (this.#phase === "waiting") this.#phase = "overdue";
      this.#answerIfDecided();
    });
    this.#answer.promise.then(() => wait[Symbol.dispose]());
  }

  #answerIfDecided(): void {
    if (this.#abort.signal.aborted) return;
    const phase = this.#phase;
    const isComplete = this.#candidates.every(({ reading }) => reading !== undefined);
    const answer = decide(this.#candidates, phase === "overdue");
    if (answer === undefined) return;
    this.#phase = "answered";
    switch (phase) {
      case "waiting":
        return this.#end(answer);
      case "overdue":
        if (!this.#options.mayGoOn || isComplete) return this.#end(answer);
        if (answer.kind !== "unknown") return this.#answer.resolve(answer);
        this.#later = Promise.withResolvers();
        return this.#answer.resolve({ kind: "unknown", later: this.#later.promise });
      case "answered":
        this.#later?.resolve(answer);
        if (isComplete) this.#end(answer);
    }
  }

  #end(answer: PoolAnswer): void {
    this.#answer.resolve(answer);
    if (this.#candidates.some(({ reading }) => reading === undefined)) this.#abort.abort();
    this.#ended.resolve();
  }
}

/** A bug in reading one answer must not lose the others. */
function unexpected(error: unknown): NarinfoReading {
  return { kind: "failed", reason: "garbage", detail: messageOf(error) };
}

/**
 * `undefined` while an answer to come could still change the outcome. An overdue query waits for
 * upstreams that answered before. While there is no offer, it waits for connected ones, too.
 */
function decide(candidates: readonly Candidate[], isOverdue: boolean): PoolAnswer | undefined {
  const offers = candidates.flatMap((candidate) => {
    const { upstream, reading } = candidate;
    if (reading?.kind !== "found") return [];
    const { kind: _, ...offered } = reading;
    return [{ candidate, offer: { upstream: upstream.source.url, ...offered } }];
  });
  const open = candidates.filter(({ reading }) => reading === undefined);
  const waiting = open.filter(({ wait, upstream }) =>
    !isOverdue || upstream.waitOf("narinfo") === "full" ||
    wait === "full" && offers.length === 0
  );
  if (offers.length === 0) {
    if (waiting.length > 0) return undefined;
    const failed = candidates.length === 0 || open.length > 0 ||
      candidates.some(({ reading }) =>
        reading?.kind === "failed" || reading?.kind === "queue-timeout"
      );
    return { kind: failed ? "unknown" : "absent" };
  }
  if (offers.length + waiting.length > 1) {
    const rivals = [...offers.map(({ candidate }) => candidate), ...waiting];
    if (rivals.some(({ upstream }) => upstream.priority === undefined)) return undefined;
    offers.sort((a, b) => preference(a.candidate, b.candidate));
  }
  const [best, ...others] = offers;
  if (best === undefined || waiting.some((rival) => preference(rival, best.candidate) < 0)) {
    return undefined;
  }
  return { kind: "found", best: best.offer, others: others.map(({ offer }) => offer) };
}

/** Negative where `a` is preferred to `b`. */
export function preference(a: Ranked, b: Ranked): number {
  const difference = (a.upstream.priority ?? Infinity) - (b.upstream.priority ?? Infinity);
  return (difference || 0) || a.order - b.order;
}
