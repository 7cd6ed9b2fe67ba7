import { FAILURE_HINTS, failureOf } from "./failure_hints.ts";
import type { NarinfoReading, UpstreamFailure } from "./upstream.ts";

/** Requests whose latency is remembered, for each upstream. */
const LATENCIES_MAX = 60;

/** The result of the last narinfo request to an upstream. */
export interface LastAnswer {
  readonly result: "found" | "absent" | UpstreamFailure;
  readonly atMs: number;
}

/** The newest failed request to an upstream, probes included. */
export interface LastError {
  readonly reason: UpstreamFailure;
  readonly hint: string;
  readonly atMs: number;
}

/** The narinfo requests to one upstream since the start. */
export interface UpstreamAnswers {
  readonly last: LastAnswer | undefined;
  readonly lastError: LastError | undefined;
  readonly counts: Readonly<Record<"found" | "absent" | "failed", number>>;
  /** Of the newest requests, the oldest first. */
  readonly latenciesMs: readonly number[];
}

/** Written for each answer, so in place. */
interface Noted extends UpstreamAnswers {
  last: LastAnswer | undefined;
  lastError: LastError | undefined;
  readonly counts: Record<"found" | "absent" | "failed", number>;
  readonly latenciesMs: number[];
}

/** The answers of each upstream, for the status page. */
export class LastAnswers {
  readonly #nowMs: () => number;
  readonly #answers = new Map<string, Noted>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  note(upstream: string, reading: NarinfoReading): void {
    const noted = this.#of(upstream);
    const atMs = this.#nowMs();
    const result = reading.kind === "failed" ? reading.reason : reading.kind;
    if (reading.kind === "failed") noted.lastError = lastErrorOf(reading.reason, atMs);
    noted.counts[reading.kind]++;
    noted.last = { result, atMs };
  }

  /** Notes the error of a probe, which may come before the first narinfo request. */
  undescribed(upstream: string, error: unknown): void {
    this.#of(upstream).lastError = lastErrorOf(failureOf(error), this.#nowMs());
  }

  /** Notes how long an answer took. */
  took(upstream: string, ms: number): void {
    const { latenciesMs } = this.#of(upstream);
    if (latenciesMs.length >= LATENCIES_MAX) latenciesMs.shift();
    latenciesMs.push(ms);
  }

  /** As they are now; later answers change the result. */
  of(upstream: string): UpstreamAnswers {
    return this.#of(upstream);
  }

  #of(upstream: string): Noted {
    const known = this.#answers.get(upstream);
    if (known !== undefined) return known;
    const counts = { found: 0, absent: 0, failed: 0 };
    const noted = { last: undefined, lastError: undefined, counts, latenciesMs: [] };
    this.#answers.set(upstream, noted);
    return noted;
  }
}

function lastErrorOf(reason: UpstreamFailure, atMs: number): LastError {
  return { reason, hint: FAILURE_HINTS[reason], atMs };
}
