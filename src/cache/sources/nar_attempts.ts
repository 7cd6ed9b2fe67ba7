import { messageOf } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { NarBodySource } from "../../upstream/upstream.ts";
import type { FetchEnd, FetchFailure, FetchOutcome } from "../fetch/nar_fetcher.ts";
import { Mismatch } from "../verify/check_nar.ts";
import { AttemptLog, type AttemptLogDeps, type BreakFacts } from "./attempt_log.ts";
import { type NarCandidates, narCandidates, type NarCandidatesDeps } from "./nar_candidates.ts";
import {
  type FailedTry,
  type FailureClass,
  failureClassOf,
  SourceFailures,
} from "./source_failures.ts";

export interface NarAttemptsDeps {
  readonly candidates: NarCandidatesDeps;
  readonly logging: AttemptLogDeps;
  /** How long a source may send nothing after the last progress. */
  readonly idleTimeoutMs: number;
  /** Time in which one source has the request alone; then the next one gets it, too. */
  readonly hedgeAfterMs: number;
  /** The longest wait of a prefetch for an answer: it must hold no place that others need. */
  readonly prefetchWaitMs: number;
}

/** The destination of the file. */
export interface NarTarget {
  /** The count of leading bytes that arrived. */
  readonly received: number;
  /** True while the target takes more bytes. */
  readonly isGrowing: boolean;
  /** True once a client reads the file: from then on it cannot be replaced. */
  readonly isPromised: boolean;
  /** False until a client waits for the file: each source then gets one request, in one round. */
  readonly isWanted: boolean;
  /** Rate of the last seconds; `undefined` in the first one. */
  readonly bytesPerSecond: number | undefined;
  /** Fetches the rest from `source`. Calls `taken` if it answers first. Never rejects. */
  from(source: NarSource, taken: () => void): Promise<FetchOutcome>;
  /** Ends the requests of a file that no client wants, at once. */
  abandon(): void;
  /** Releases the whole file, or throws a Mismatch where it is wrong. */
  judge(end: FetchEnd): Promise<void>;
  /** The check result is final: the file is wrong. */
  refused(reason: Mismatch["reason"]): void;
  /** Drops all bytes, which are wrong: the file begins anew. */
  startOver(): void;
  /**
   * Begins anew, and takes any file of the NAR from now on: size and hash of the narinfo's file are
   * unsigned. False where the size is signed, or unknown.
   */
  doubtFile(): boolean;
}

interface NarAttemptsParts {
  readonly nar: NarRow;
  readonly target: NarTarget;
  readonly requestId: string;
  /** Ends the attempts between two sources. */
  readonly signal?: AbortSignal;
}

/** The result of the attempts. */
type NarResult =
  | {
    readonly type: "whole";
    readonly end: FetchEnd;
    /** The last that sent bytes of it. */
    readonly upstream: string;
    /** All that did, the first first. */
    readonly contributors: readonly string[];
  }
  | NarFailure & { readonly type: "failed" };

/** Why the file did not arrive. The set of reasons is closed. */
export interface NarFailure {
  readonly reason: FetchFailure | Mismatch["reason"] | "absent" | "broken";
  readonly detail: string;
  /** HTTP status of a response that is an error. */
  readonly status?: number;
  /** The upstream of the last attempt. */
  readonly upstream?: string;
  /** The error that the check threw. */
  readonly error?: unknown;
}

/** Reasons that say nothing about the upstreams. */
const OUR_REASONS: readonly NarFailure["reason"][] = ["room", "disk", "cancelled"];

/** A running attempt. `handled` resolves after that of its result. */
interface RunningAttempt extends SourceAttempt {
  readonly handled: Promise<void>;
}

/** A finished attempt. */
interface Tried {
  readonly source: NarSource;
  readonly addedBytes: number;
  readonly requests: number;
}

/**
 * The attempts to bring one NAR file from the first upstream that has it. After a break, the same
 * upstream sends the rest as long as it adds bytes. Then come the others, then all again,
 * until `SourceFailures` gives up. After a stall the others are first.
 */
export class NarAttempts {
  readonly log: AttemptLog;
  readonly #target: NarTarget;
  readonly #sources: SourceRounds;
  readonly #hedgeAfterMs: number;
  readonly #prefetchWaitMs: number;
  readonly #signal: AbortSignal | undefined;
  /** The upstreams of the bytes, in the order in which they came. */
  readonly #contributors = new Set<string>();
  #isOver = false;
  #hasMemberFailed = false;
  /** All bytes arrived, and there is no check result yet. */
  #isJudging = false;
  /** The sources whose file has another size than the narinfo says. */
  #otherSizes: NarSource[] = [];
  /** Counts the restarts of the file. */
  #round = 0;
  #result: NarResult = { type: "failed", reason: "absent", detail: "no upstream has it" };

  constructor(deps: NarAttemptsDeps, { nar, target, requestId, signal }: NarAttemptsParts) {
    this.log = new AttemptLog(deps.logging, nar.name, requestId);
    this.#target = target;
    this.#signal = signal;
    this.#hedgeAfterMs = deps.hedgeAfterMs;
    this.#prefetchWaitMs = deps.prefetchWaitMs;
    const failures = new SourceFailures(deps.idleTimeoutMs, clock.nowMs());
    if (target.isPromised) failures.begin();
    const candidates = () => narCandidates(deps.candidates, nar, requestId);
    this.#sources = new SourceRounds(candidates, failures);
  }

  /** Resolves when the file is right, or every source is given up. */
  async run(): Promise<NarResult> {
    const next = async () => this.#isOver ? undefined : await this.#sources.next();
    const ask = (source: NarSource) => this.#ask(source);
    const putBack = (source: NarSource) => this.#sources.putBack(source);
    do {
      for (;;) {
        const race = { next, ask, putBack, hedgeAfterMs: this.#hedgeAfterMs };
        const attempt = await firstToAnswer(race);
        if (attempt === undefined) break;
        await attempt.handled;
      }
    } while (!this.#isOver && (await this.#mayGoOn() || this.#doubtsFile()));
    if (this.#result.type === "failed" && !this.#signal?.aborted) this.#givenUp(this.#result);
    return this.#result;
  }

  /** Begins another round, after a pause. False after giving up. */
  async #mayGoOn(): Promise<boolean> {
    return this.#target.isWanted && await this.#sources.another(this.#signal);
  }

  /**
   * Nobody sends a file of the narinfo's size, which is unsigned: asks those once more that have
   * another, such as a larder that keeps the NAR in another form now. The NAR hash decides. False
   * where there are none, or a client counts on the size.
   */
  #doubtsFile(): boolean {
    const sources = this.#otherSizes.splice(0);
    const { isWanted, isPromised, received } = this.#target;
    if (sources.length === 0 || !isWanted || this.#signal?.aborted) return false;
    if ((isPromised && received > 0) || !this.#target.doubtFile()) return false;
    this.#round++;
    this.#contributors.clear();
    this.#sources.askAgain(sources);
    return true;
  }

  #givenUp({ reason, detail, status, upstream = "", error }: NarFailure): void {
    if (OUR_REASONS.includes(reason)) return;
    const { received, isPromised } = this.#target;
    // A wrong file has its own line, and so has a file that no upstream has.
    // A member logs why it does not send a file that no upstream has: its storage is away, say.
    const isElsewhere = !isPromised || this.#hasMemberFailed;
    const isLogged = error !== undefined || (reason === "absent" && isElsewhere);
    const why = { upstream, reason, ...status === undefined ? {} : { status } };
    this.log.givenUp(isPromised, isLogged ? undefined : { ...why, detail, received });
  }

  /** The file is wrong: call it during the check, or after it. */
  wrong(mismatch: Mismatch, upstream?: string): void {
    const contributors = [...this.#contributors];
    this.log.wrong(upstream ?? contributors.at(-1) ?? "", mismatch, contributors);
  }

  /** Requests the missing bytes from `source`. */
  #ask(source: NarSource): RunningAttempt {
    const taken = Promise.withResolvers<boolean>();
    const handled = this.#try(source, () => taken.resolve(true))
      .finally(() => taken.resolve(false));
    // Without `cancel`: the target ends the other requests by itself.
    return { source, answered: taken.promise, handled };
  }

  async #try(source: NarSource, answered: () => void): Promise<void> {
    const before = this.#target.received;
    const round = this.#round;
    let isTaken = false;
    this.log.asking(source.upstream, before);
    const over = this.log.waits(source.upstream);
    // Behind the check of the file, for which its clients wait, too.
    using _over = { [Symbol.dispose]: () => over?.() };
    using _limit = this.#target.isWanted ? undefined : clock.countdown(this.#prefetchWaitMs, () => {
      if (isTaken || this.#target.isWanted) return;
      this.log.late(source.upstream);
      this.#target.abandon();
    });
    let pace: Disposable | undefined;
    const outcome = await this.#target.from(source, () => {
      isTaken = true;
      this.log.begun(source.upstream, before);
      pace = this.log.pace(source.upstream, this.#target);
      answered();
    });
    pace?.[Symbol.dispose]();
    if (outcome.type === "failed" && outcome.reason === "outrun") over?.("lost");
    // Another source has brought the whole file meanwhile, or ended the attempts.
    if (this.#isOver || this.#isJudging || round !== this.#round) return over?.("lost");
    // Otherwise the new bytes are those of the source that was taken.
    const addedBytes = isTaken ? this.#target.received - before : 0;
    if (addedBytes > 0) this.#contributors.add(source.upstream);
    await this.#read(outcome, { source, addedBytes, requests: outcome.requests ?? 1 });
  }

  async #read(outcome: FetchOutcome, tried: Tried): Promise<void> {
    const { upstream } = tried.source;
    this.log.answered(upstream, outcome);
    if (outcome.type === "end") await this.#judge(outcome, tried);
    else if (outcome.type === "failed") this.#failed(outcome, tried);
    else {
      this.log.lost(upstream);
      this.#goOn("wrong file", tried);
    }
  }

  #goOn(failureClass: FailureClass, { source, ...tried }: Tried): void {
    this.#sources.failed(source, { ...tried, failureClass });
  }

  #failed(outcome: Extract<FetchOutcome, { type: "failed" }>, tried: Tried): void {
    const { reason, detail, status } = outcome;
    if (reason === "outrun") return;
    const { upstream } = tried.source;
    const why = { reason, detail, ...reason === "status" && status ? { status } : {} };
    if (this.log.isUpstream(upstream)) this.#result = { type: "failed", ...why, upstream };
    else this.#hasMemberFailed = true;
    const failureClass = failureClassOf(reason);
    if (failureClass === undefined) {
      this.#isOver = true;
      return;
    }
    if (reason === "size" || reason === "differs") this.#otherSizes.push(tried.source);
    if (reason === "size") {
      this.log.wrong(upstream, new Mismatch("file_size", detail), [upstream]);
    } else this.#brokeOff(upstream, why);
    this.#goOn(failureClass, tried);
  }

  async #judge(end: FetchEnd, tried: Tried): Promise<void> {
    const { upstream } = tried.source;
    this.#isJudging = true;
    try {
      await this.#target.judge(end);
      this.#isOver = true;
      const contributors = [...this.#contributors];
      this.#result = { type: "whole", end, upstream, contributors };
      if (end.surplus) this.log.surplus(upstream);
    } catch (error) {
      const detail = messageOf(error);
      const reason = error instanceof Mismatch ? error.reason : "broken";
      this.#result = { type: "failed", reason, detail, upstream, error };
      if (error instanceof Mismatch) this.#refused(error, end, tried);
      else this.#isOver = true;
    } finally {
      this.#isJudging = false;
    }
  }

  #refused(mismatch: Mismatch, { maybeShort, surplus }: FetchEnd, tried: Tried): void {
    const { upstream } = tried.source;
    const mayGoOn = maybeShort && this.#target.isGrowing;
    if (mayGoOn && tried.addedBytes > 0) {
      const detail = `${mismatch.message}, and nothing said where it ends`;
      this.#brokeOff(upstream, { reason: "upstream", detail });
      return this.#goOn("error", tried);
    }
    this.#target.refused(mismatch.reason);
    this.wrong(mismatch, upstream);
    if (mayGoOn) return this.#goOn("wrong file", tried);
    // A client that has begun to read cannot take another file.
    this.#isOver = this.#target.isPromised;
    if (this.#isOver) return;
    if (surplus) this.#otherSizes.push(tried.source);
    this.#round++;
    const [first = upstream] = this.#contributors;
    this.#contributors.clear();
    this.#target.startOver();
    this.#sources.startOver(first);
  }

  #brokeOff(upstream: string, why: Omit<BreakFacts, "received">): void {
    this.log.brokeOff(upstream, { ...why, received: this.#target.received });
  }
}

/** Divisor of the response header timeout, after which the next upstream gets the request too. */
const HEDGE_PART = 3;

/** The timeouts of one upstream. */
interface UpstreamTimeouts {
  readonly headerTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** Timeouts of NAR requests. */
export function narTimeouts(upstreams: readonly UpstreamTimeouts[]) {
  const idleTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.idleTimeoutMs));
  const headerTimeoutMs = Math.max(0, ...upstreams.map((upstream) => upstream.headerTimeoutMs));
  return {
    idleTimeoutMs,
    hedgeAfterMs: headerTimeoutMs / HEDGE_PART,
    prefetchWaitMs: headerTimeoutMs,
  };
}

/** The sources of one NAR file in order, round after round. */
class SourceRounds {
  readonly #candidates: () => NarCandidates;
  readonly #failures: SourceFailures;
  #round: NarCandidates | undefined;
  #again: NarSource[] = [];

  /** `candidates` returns those of one round. */
  constructor(candidates: () => NarCandidates, failures: SourceFailures) {
    this.#candidates = candidates;
    this.#failures = failures;
  }

  /** The next source of this round that may be requested; `undefined` at the round's end. */
  async next(): Promise<NarSource | undefined> {
    for (let source = this.#again.shift(); source !== undefined; source = this.#again.shift()) {
      if (this.#failures.mayAsk(source.upstream)) return source;
    }
    this.#round ??= this.#candidates();
    for (;;) {
      const { value, done } = await this.#round.next();
      if (done) return undefined;
      if (this.#failures.mayAsk(value.upstream)) return value;
    }
  }

  /** Begins another round, after a pause. False after giving up, or when `signal` fired. */
  async another(signal?: AbortSignal): Promise<boolean> {
    const pauseMs = this.#failures.pauseMs(clock.nowMs());
    if (pauseMs === undefined) return false;
    await clock.pause(pauseMs * (1 - dice.fraction() / 4), signal);
    this.#round = undefined;
    return signal?.aborted !== true;
  }

  /** Another source was quicker: this one is the next to ask. */
  putBack(source: NarSource): void {
    this.#again.unshift(source);
  }

  /** The bytes are wrong, and no client has received any. Begins a first round without `wrong`. */
  startOver(wrong: string): void {
    this.#failures.startOver(wrong);
    this.#round = undefined;
    this.#again = [];
  }

  /** Asks these sources again, which counted as those of a wrong file. */
  askAgain(sources: readonly NarSource[]): void {
    for (const { upstream } of sources) this.#failures.forgive(upstream);
    this.#again.push(...sources);
  }

  /** Notes an attempt at `source` that did not bring the rest of the file. */
  failed(source: NarSource, tried: Omit<FailedTry, "atMs">): void {
    const { upstream } = source;
    const mayGoOn = this.#failures.failed(upstream, { ...tried, atMs: clock.nowMs() });
    if (mayGoOn) this.#again.unshift(source);
  }
}

/** A source with a request in flight. */
export interface SourceAttempt {
  readonly source: NarSource;
  /** True as soon as it answers with the file; false when it will not. Never rejects. */
  readonly answered: Promise<boolean>;
  /** Ends the request: another source was quicker. Default: the request goes on. */
  cancel?(): void;
}

interface SourceRace<Racer extends SourceAttempt> {
  /** The source to ask next; `undefined`: none is left. */
  readonly next: () => Promise<NarSource | undefined>;
  readonly ask: (source: NarSource) => Racer;
  /** Called with each source that lost the race. Default: it is dropped. */
  readonly putBack?: (source: NarSource) => void;
  /** How long one source has the request alone. */
  readonly hedgeAfterMs: number;
}

/**
 * Asks the sources one after another: the next one when the last one fails, or is late. A late one
 * stays in the race. Resolves to the first that answers; `undefined`: none did.
 */
export function firstToAnswer<Racer extends SourceAttempt>(
  { next, ask, putBack, hedgeAfterMs }: SourceRace<Racer>,
): Promise<Racer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Racer | undefined>();
  const waiting = new Set<Racer>();
  let [isOver, isFinding, hasMore] = [false, false, true];
  let hedging: Disposable | undefined;
  let last: Racer | undefined;

  function finish(winner?: Racer): void {
    isOver = true;
    hedging?.[Symbol.dispose]();
    if (winner !== undefined) waiting.delete(winner);
    for (const loser of waiting) {
      loser.cancel?.();
      putBack?.(loser.source);
    }
    resolve(winner);
  }

  function fail(error: unknown): void {
    reject(error);
    finish();
  }

  async function askNext(): Promise<void> {
    hedging?.[Symbol.dispose]();
    if (isFinding || isOver) return;
    isFinding = true;
    const source = hasMore ? await next() : undefined;
    isFinding = false;
    if (source === undefined) {
      hasMore = false;
      if (waiting.size === 0 && !isOver) finish();
    } else if (isOver) putBack?.(source);
    else begin(ask(source));
  }

  function begin(attempt: Racer): void {
    waiting.add(attempt);
    last = attempt;
    hedging = clock.countdown(hedgeAfterMs, () => void askNext().catch(fail));
    attempt.answered.then((isGood) => {
      if (isOver) return;
      if (isGood) return finish(attempt);
      waiting.delete(attempt);
      // A late one that fails is replaced already.
      if (attempt === last || waiting.size === 0) return askNext();
    }).catch(fail);
  }

  askNext().catch(fail);
  return promise;
}

export interface StatNarDeps {
  readonly candidates: NarCandidatesDeps;
  /** Sources of NARs by the URL of an upstream or a member. */
  readonly narClients: { get(url: string): Pick<NarBodySource, "statNar"> | undefined };
  /** How long one source has the request alone. */
  readonly hedgeAfterMs: number;
  /** Called with each source that says that it lacks the file. */
  readonly absent?: (upstream: string) => void;
}

type FoundNar = Awaited<ReturnType<NarBodySource["statNar"]>>;

interface SizeAttempt extends SourceAttempt {
  readonly found: Promise<FoundNar>;
}

/** What is known of a file, and the upstream or member that said it. */
type FoundAt = NonNullable<FoundNar> & Pick<NarSource, "upstream">;

/** The NAR file's size, from the first upstream that has the file, or the member that gets it. */
export async function statNar(
  { candidates, hedgeAfterMs, ...asking }: StatNarDeps,
  nar: NarRow,
  requestId: string,
): Promise<FoundAt | undefined> {
  const sources = narCandidates(candidates, nar, requestId);
  const first = await firstToAnswer({
    next: async () => (await sources.next()).value ?? undefined,
    ask: (source) => ask(source, asking),
    hedgeAfterMs,
  });
  const found = await first?.found;
  return first && found && { ...found, upstream: first.source.upstream };
}

function ask(
  { upstream, location }: NarSource,
  { narClients, absent }: Pick<StatNarDeps, "narClients" | "absent">,
): SizeAttempt {
  const source = { upstream, location };
  const quicker = new AbortController();
  const stat = async () => {
    const size = await narClients.get(upstream)?.statNar(location, quicker.signal);
    if (size === undefined) absent?.(upstream);
    return size;
  };
  const found = stat().catch(() => undefined);
  const answered = found.then((size) => size !== undefined);
  return { source, found, answered, cancel: () => quicker.abort() };
}
