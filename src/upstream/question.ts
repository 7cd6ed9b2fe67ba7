import { messageOf } from "../base/failure.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import type { StorePathHash } from "../nix/store_path.ts";
import type { Standing } from "./standing.ts";
import type { NarinfoReading, QueuedReading } from "./upstream.ts";

/**
 * An upstream that has not shown yet that it answers, and to which no connection could be made
 * yet, is waited for so long: with none reachable an unknown path is a 404 within a second.
 */
const UNREACHED_WAIT_MS = 800;

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
  /**
   * Nobody has it, and at least one could not tell. `later` is there where some are still asked:
   * what they say in the end.
   */
  | { readonly kind: "unknown"; readonly later?: Promise<PoolAnswer> };

interface Asked {
  readonly order: number;
  readonly standing: Standing;
  /** True when it was proven as the question began, or takes connections: it gets all its time. */
  isThere: boolean;
  reading: QueuedReading | undefined;
}

type Ranked = Pick<Asked, "order" | "standing">;

export interface QuestionOptions {
  /** Of the request that asks; for the log. */
  readonly requestId: string;
  /** Who is not waited for any longer is still listened to, for its sake and for the next ones. */
  readonly mayGoOn: boolean;
}

type Observe = (upstream: string, reading: NarinfoReading, requestId: string) => void;

/** One narinfo, asked of several upstreams side by side. */
export class Question implements Disposable {
  readonly #asked: readonly Asked[];
  readonly #observe: Observe;
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  readonly #answer = Promise.withResolvers<PoolAnswer>();
  #later: PromiseWithResolvers<PoolAnswer> | undefined;
  #isHurried = false;
  #isAnswered = false;

  constructor(standings: readonly Standing[], observe: Observe) {
    this.#asked = standings.map((standing, order) => (
      { order, standing, isThere: standing.isProven, reading: undefined }
    ));
    this.#observe = observe;
  }

  /** Resolves when nobody is asked any more. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** To be called once. */
  ask(storePathHash: StorePathHash, options: QuestionOptions): Promise<PoolAnswer> {
    const { signal } = this.#abort;
    for (const one of this.#asked) {
      const { standing } = one;
      standing.known().then(() => this.#look(options));
      if (!one.isThere) standing.reached().then((isReached) => one.isThere = isReached);
      const answer = standing.source.narinfo(storePathHash, signal).catch(unexpected);
      standing.count(answer, signal).then((reading) => {
        // What we ended ourselves says nothing about the upstream.
        if (signal.aborted) return;
        one.reading = reading;
        if (reading.kind !== "late") {
          this.#observe(standing.source.url, reading, options.requestId);
        }
        this.#look(options);
      });
    }
    if (this.#asked.some(({ isThere }) => !isThere)) this.#hurryLater(options);
    this.#look(options);
    return this.#answer.promise;
  }

  /** Nobody waits any more. */
  [Symbol.dispose](): void {
    this.#abort.abort();
    this.#answer.resolve({ kind: "unknown" });
    this.#later?.resolve({ kind: "unknown" });
    this.#over.resolve();
  }

  #hurryLater(options: QuestionOptions): void {
    const timer = setTimeout(() => {
      this.#isHurried = true;
      this.#look(options);
    }, UNREACHED_WAIT_MS);
    this.#answer.promise.then(() => clearTimeout(timer));
  }

  #look({ mayGoOn }: QuestionOptions): void {
    if (this.#abort.signal.aborted) return;
    const isComplete = this.#asked.every(({ reading }) => reading !== undefined);
    const isHurried = this.#isHurried && !this.#isAnswered;
    const answer = decide(this.#asked, isHurried);
    if (answer !== undefined && !this.#isAnswered) {
      this.#isAnswered = true;
      if (!isHurried || !mayGoOn || isComplete) return this.#end(answer);
      if (answer.kind !== "unknown") return this.#answer.resolve(answer);
      this.#later = Promise.withResolvers();
      this.#answer.resolve({ kind: "unknown", later: this.#later.promise });
    } else if (answer !== undefined) {
      this.#later?.resolve(answer);
      if (isComplete) this.#end(answer);
    }
  }

  #end(answer: PoolAnswer): void {
    this.#answer.resolve(answer);
    if (this.#asked.some(({ reading }) => reading === undefined)) this.#abort.abort();
    this.#over.resolve();
  }
}

/** A bug in reading an answer must not take the answers of the others with it. */
function unexpected(error: unknown): NarinfoReading {
  return { kind: "failed", reason: "garbage", detail: messageOf(error) };
}

/**
 * `undefined` while an answer to come could still change the outcome; hurried, only those of
 * upstreams that are there are waited for, and only where nobody else has it.
 */
function decide(asked: readonly Asked[], isHurried: boolean): PoolAnswer | undefined {
  const offers = asked.flatMap((one) => {
    if (one.reading?.kind !== "found") return [];
    const { narinfo, trusted } = one.reading;
    return [{ asked: one, offer: { upstream: one.standing.source.url, narinfo, trusted } }];
  });
  const silent = asked.filter(({ reading }) => reading === undefined);
  // Who has not answered yet may be there, but somebody else has it already.
  const waiting = silent.filter(({ isThere, standing }) =>
    !isHurried || standing.isProven || isThere && offers.length === 0
  );
  if (offers.length === 0) {
    if (waiting.length > 0) return undefined;
    const failed = asked.length === 0 || silent.length > 0 ||
      asked.some(({ reading }) => reading?.kind === "failed" || reading?.kind === "late");
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

/** Negative where `a` is preferred to `b`. */
export function preference(a: Ranked, b: Ranked): number {
  const difference = (a.standing.priority ?? Infinity) - (b.standing.priority ?? Infinity);
  return (difference || 0) || a.order - b.order;
}
