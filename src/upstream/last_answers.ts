import { failureOf, hintFor } from "./failure_hints.ts";
import type { RivalWait } from "./pooled_upstream.ts";
import type { NarinfoReading, UpstreamFailure, UpstreamReading } from "./upstream.ts";

/** The newest waits that decide whether an upstream is slow, and the late ones among them. */
const WAITS_MAX = 16;
const LATE_WAITS_MAX = 3;

/** Requests whose latency is remembered, for each upstream. */
const LATENCIES_MAX = 60;

/** The result of the last narinfo request to an upstream, or of the last NAR request. */
export interface LastAnswer {
  readonly result: "found" | "absent" | UpstreamFailure;
  readonly atMs: number;
}

/** The newest failed request to an upstream, probes included. */
export interface LastError {
  readonly reason: UpstreamFailure;
  /** HTTP status of a response that is an error. */
  readonly status: number | undefined;
  readonly request: "narinfo" | "nar" | "probe";
  readonly hint: string;
  readonly atMs: number;
}

/** The answers of one upstream since the start. The counts and latencies are of narinfos. */
export interface UpstreamAnswers {
  readonly last: LastAnswer | undefined;
  readonly lastNar: LastAnswer | undefined;
  readonly lastError: LastError | undefined;
  readonly counts: Readonly<Record<"found" | "absent" | "failed", number>>;
  /** Latencies of the newest requests, the oldest first. */
  readonly latenciesMs: readonly number[];
  readonly waits: UpstreamWaits;
  /** Answers that took over a second, while a client waited. */
  readonly slowAnswers: SlowAnswers;
  /** The path that last waited for it: for its answer, its priority, or the bytes of its NAR. */
  readonly lastWait: PathWait | undefined;
}

/** A path that waited for an upstream. */
export interface PathWait {
  /** Its name, or the hash of a path without one. */
  readonly path: string;
  readonly ms: number;
  /** The rate of its NAR file, where the bytes of that were awaited. */
  readonly bytesPerSecond?: number;
  readonly atMs: number;
}

export interface SlowAnswers {
  readonly count: number;
  readonly longestMs: number;
}

/** The waits of clients for an upstream of better priority, while another had the answer. */
export interface UpstreamWaits {
  readonly count: number;
  /** Those in vain. */
  readonly late: number;
  readonly totalMs: number;
  readonly longestMs: number;
}

/** Written for each answer, so in place. */
type Noted = { -readonly [Fact in keyof UpstreamAnswers]: UpstreamAnswers[Fact] } & {
  readonly counts: Record<"found" | "absent" | "failed", number>;
  readonly latenciesMs: number[];
  /** The newest waits: true for those in vain. */
  readonly newestWaits: boolean[];
  /** The newest answers that a client waited for: true for the slow ones. */
  readonly newestSlow: boolean[];
};

/** True where too many of the newest are. */
function isTooOften(newest: boolean[], now: boolean): boolean {
  if (newest.length >= WAITS_MAX) newest.shift();
  newest.push(now);
  return newest.filter((was) => was).length >= LATE_WAITS_MAX;
}

type FailedAnswer = ReturnType<typeof failureOf>;

/** The answers of each upstream, for the status page. */
export class LastAnswers {
  readonly #nowMs: () => number;
  readonly #hasCredentials: (upstream: string) => boolean;
  readonly #answers = new Map<string, Noted>();

  /** `hasCredentials`: whether requests to an upstream have some. Default: none have. */
  constructor(nowMs: () => number, hasCredentials: (upstream: string) => boolean = () => false) {
    this.#nowMs = nowMs;
    this.#hasCredentials = hasCredentials;
  }

  /** The remedy for a failure of an upstream. */
  hintFor(upstream: string, failure: FailedAnswer): string {
    return hintFor(failure, this.#hasCredentials(upstream));
  }

  note(upstream: string, reading: NarinfoReading): void {
    const noted = this.#of(upstream);
    noted.counts[reading.kind]++;
    noted.last = this.#answer(upstream, reading, "narinfo");
  }

  noteNar(upstream: string, reading: UpstreamReading): void {
    const noted = this.#of(upstream);
    noted.lastNar = this.#answer(upstream, reading, "nar");
  }

  /** Notes the error of a probe, which may come before the first narinfo request. */
  undescribed(upstream: string, error: unknown): void {
    const failure = failureOf(error);
    this.#of(upstream).lastError = this.#lastErrorOf(upstream, failure, "probe");
  }

  /** Notes how long an answer took. */
  took(upstream: string, ms: number): void {
    const { latenciesMs } = this.#of(upstream);
    if (latenciesMs.length >= LATENCIES_MAX) latenciesMs.shift();
    latenciesMs.push(ms);
  }

  /**
   * Notes an answer that a client waited for; `tookMs`: set if it was slow. True while too many of
   * the newest are.
   */
  answered(upstream: string, path: string, tookMs: number | undefined): boolean {
    const noted = this.#of(upstream);
    if (tookMs === undefined && noted.slowAnswers.count === 0) return false;
    if (tookMs !== undefined) {
      const { count, longestMs } = noted.slowAnswers;
      noted.slowAnswers = { count: count + 1, longestMs: Math.max(longestMs, tookMs) };
      noted.lastWait = { path, ms: tookMs, atMs: this.#nowMs() };
    }
    return isTooOften(noted.newestSlow, tookMs !== undefined);
  }

  /** Notes a wait for the upstream, if any. True while too many are in vain: it is slow. */
  waited(upstream: string, path: string, { ms, isLate }: RivalWait): boolean {
    const noted = this.#of(upstream);
    const isWait = ms > 0 || isLate;
    // Nearly always: it has answered in time, as ever.
    if (!isWait && noted.waits.late === 0) return false;
    const { count, late, totalMs, longestMs } = noted.waits;
    noted.waits = {
      count: count + Number(isWait),
      late: late + Number(isLate),
      totalMs: totalMs + ms,
      longestMs: Math.max(longestMs, ms),
    };
    if (isWait) noted.lastWait = { path, ms, atMs: this.#nowMs() };
    return isTooOften(noted.newestWaits, isLate);
  }

  /** Notes a path that waits for the bytes of its NAR. */
  sends(upstream: string, wait: Omit<PathWait, "atMs">): void {
    this.#of(upstream).lastWait = { ...wait, atMs: this.#nowMs() };
  }

  /** Forgets the newest waits: the upstream is quick again. */
  quick(upstream: string): void {
    const { newestWaits, newestSlow } = this.#of(upstream);
    newestWaits.length = newestSlow.length = 0;
  }

  /** Present answers of an upstream; later ones change the result. */
  of(upstream: string): UpstreamAnswers {
    return this.#of(upstream);
  }

  #answer(
    upstream: string,
    reading: UpstreamReading,
    request: LastError["request"],
  ): LastAnswer {
    const atMs = this.#nowMs();
    if (reading.kind !== "failed") return { result: reading.kind, atMs };
    this.#of(upstream).lastError = this.#lastErrorOf(upstream, reading, request);
    return { result: reading.reason, atMs };
  }

  #lastErrorOf(
    upstream: string,
    failure: FailedAnswer,
    request: LastError["request"],
  ): LastError {
    const { reason, status } = failure;
    const hint = this.hintFor(upstream, failure);
    return { reason, status, request, hint, atMs: this.#nowMs() };
  }

  #of(upstream: string): Noted {
    const known = this.#answers.get(upstream);
    if (known !== undefined) return known;
    const counts = { found: 0, absent: 0, failed: 0 };
    const lasts = { last: undefined, lastNar: undefined, lastError: undefined };
    const waits = { count: 0, late: 0, totalMs: 0, longestMs: 0 };
    const slow = { slowAnswers: { count: 0, longestMs: 0 }, lastWait: undefined };
    const newest = { latenciesMs: [], newestWaits: [], newestSlow: [] };
    const noted: Noted = { ...lasts, ...slow, ...newest, counts, waits };
    this.#answers.set(upstream, noted);
    return noted;
  }
}
