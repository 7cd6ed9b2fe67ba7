import { messageOf } from "../base/failure.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import type { OwnSignature } from "../nix/sign_narinfo.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import { clock } from "../runtime/current.ts";
import { PATIENCE_MAX_MS, type PooledUpstream, type RivalWait } from "./pooled_upstream.ts";
import {
  type NarinfoReading,
  noAnswerReasonOf,
  type QueuedReading,
  type RequestRank,
} from "./upstream.ts";
import type { UpstreamWait } from "./upstream_health.ts";
import type { EndAsking } from "./asked_upstreams.ts";

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
  answeredAtMs: number | undefined;
  /** True once another upstream has found the path, and this one had its time since then. */
  isLate: boolean;
}

type Ranked = Pick<Candidate, "order" | "upstream">;

export interface NarinfoQueryOptions {
  readonly rank: RequestRank;
  /** True: requests go on after their clients have left, for the upstream's health. */
  readonly mayGoOn: boolean;
  /** Called with each upstream that is asked. */
  readonly asked?: ((upstream: string) => EndAsking) | undefined;
  /** Called with every answer. */
  readonly observe: (upstream: string, reading: NarinfoReading) => void;
  /** Called with the sender and each better upstream, and how long a client waited for it. */
  readonly waited: (upstream: string, wait: RivalWait) => void;
}

/** The wait for better upstreams, from the first offer on. */
interface RivalWatch extends Disposable {
  readonly rivals: readonly Candidate[];
  readonly sinceMs: number;
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
  #watch: RivalWatch | undefined;
  #isPatienceOver = false;

  constructor(upstreams: readonly PooledUpstream[], options: NarinfoQueryOptions) {
    const unanswered = { reading: undefined, answeredAtMs: undefined, isLate: false };
    this.#candidates = upstreams.map((upstream, order) => (
      { order, upstream, wait: upstream.waitOf("narinfo"), ...unanswered }
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
    this.#watch?.[Symbol.dispose]();
    this.#answer.resolve({ kind: "unknown" });
    this.#later?.resolve({ kind: "unknown" });
    this.#ended.resolve();
  }

  async #ask(candidate: Candidate, storePathHash: StorePathHash): Promise<void> {
    const { signal } = this.#abort;
    const { source } = candidate.upstream;
    const { rank, asked } = this.#options;
    const askedAtMs = clock.nowMs();
    const over = asked?.(source.url);
    if (over !== undefined) this.#answer.promise.then(() => over("lost"));
    const reading = await source.narinfo(storePathHash, signal, rank).catch(unexpected);
    over?.(reading.kind === "found" ? undefined : "empty");
    // An answer to a request that larder ended says nothing about the upstream.
    if (signal.aborted) return;
    candidate.reading = reading;
    candidate.answeredAtMs = clock.nowMs();
    if (reading.kind !== "queue-timeout") {
      this.#options.observe(source.url, reading);
      const reason = noAnswerReasonOf(reading);
      if (reason === undefined) {
        candidate.upstream.usual.narinfo.note(candidate.answeredAtMs - askedAtMs);
      }
      // Many of them at a time would make an upstream down that has failed no client.
      if (rank === "client" || reason === undefined) {
        candidate.upstream.noteNarinfo(storePathHash, reading);
      }
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
    const isPatienceOver = this.#isPatienceOver;
    const answer = decide(this.#candidates, { isOverdue: phase === "overdue", isPatienceOver });
    if (answer === undefined) return this.#limitPatience();
    this.#phase = "answered";
    const isOutrun = phase !== "answered" && this.#endPatience(answer);
    switch (isOutrun && phase === "waiting" ? "overdue" : phase) {
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

  /** From the first offer on, each better upstream is waited for a little. */
  #limitPatience(): void {
    const offered = this.#candidates.filter(({ reading }) => reading?.kind === "found");
    const [best] = offered.sort(preference);
    if (best === undefined || this.#watch !== undefined) return;
    const rivals = this.#candidates.filter((candidate) =>
      candidate.reading === undefined && mayBeat(candidate, best)
    );
    const limits = new DisposableStack();
    const limit = (ms: number, due: () => void) =>
      limits.use(clock.countdown(ms, () => {
        due();
        this.#answerIfDecided();
      }));
    for (const rival of rivals) {
      const { patienceMs } = rival.upstream.usual.narinfo;
      if (patienceMs < PATIENCE_MAX_MS) limit(patienceMs, () => rival.isLate = true);
    }
    limit(PATIENCE_MAX_MS, () => this.#isPatienceOver = true);
    const sinceMs = clock.nowMs();
    this.#watch = { rivals, sinceMs, [Symbol.dispose]: () => limits.dispose() };
  }

  /** Says once who was waited for. True where one of them has not answered. */
  #endPatience(answer: PoolAnswer): boolean {
    const rivals = this.#watch?.rivals ?? [];
    const sinceMs = this.#watch?.sinceMs ?? 0;
    this.#watch?.[Symbol.dispose]();
    this.#watch = undefined;
    const { rank, waited } = this.#options;
    if (answer.kind !== "found" || this.#candidates.length === 1) return false;
    const best = this.#candidates.find(({ upstream }) =>
      upstream.source.url === answer.best.upstream
    );
    for (const candidate of rank === "client" ? this.#candidates : []) {
      const { upstream, reading, answeredAtMs = clock.nowMs() } = candidate;
      const isRival = rivals.includes(candidate);
      if (!isRival && best !== undefined && preference(candidate, best) > 0) continue;
      const ms = isRival ? Math.round(answeredAtMs - sinceMs) : 0;
      waited(upstream.source.url, { ms, isLate: reading === undefined });
    }
    return rivals.some(({ reading }) => reading === undefined);
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
 * upstreams that answered before. While there is no offer, it waits for connected ones, too. With
 * an offer, it waits for no late upstream, and for no priority.
 */
function decide(
  candidates: readonly Candidate[],
  { isOverdue, isPatienceOver }: { readonly isOverdue: boolean; readonly isPatienceOver: boolean },
): PoolAnswer | undefined {
  const offers = candidates.flatMap((candidate) => {
    const { upstream, reading } = candidate;
    if (reading?.kind !== "found") return [];
    const { kind: _, ...offered } = reading;
    return [{ candidate, offer: { upstream: upstream.source.url, ...offered } }];
  });
  const open = candidates.filter(({ reading }) => reading === undefined);
  const hasTime = ({ isLate }: Candidate) => offers.length === 0 || !(isLate || isPatienceOver);
  const waiting = open.filter(hasTime).filter(({ wait, upstream }) =>
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
    const isUnranked = rivals.some(({ upstream }) => upstream.priority === undefined);
    if (isUnranked && !isPatienceOver) return undefined;
    offers.sort((a, b) => preference(a.candidate, b.candidate));
  }
  const [best, ...others] = offers;
  if (best === undefined || waiting.some((rival) => preference(rival, best.candidate) < 0)) {
    return undefined;
  }
  return { kind: "found", best: best.offer, others: others.map(({ offer }) => offer) };
}

/** True where its offer would win; also while a priority is unknown. */
function mayBeat(candidate: Candidate, best: Candidate): boolean {
  const isRanked = [candidate, best].every(({ upstream }) => upstream.priority !== undefined);
  return !isRanked || preference(candidate, best) < 0;
}

/** Negative where `a` is preferred to `b`. */
export function preference(a: Ranked, b: Ranked): number {
  const difference = (a.upstream.priority ?? Infinity) - (b.upstream.priority ?? Infinity);
  return (difference || 0) || a.order - b.order;
}
