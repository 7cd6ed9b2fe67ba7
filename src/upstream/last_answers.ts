import type { NarinfoReading, UpstreamFailure } from "./upstream.ts";

/** The result of the last narinfo request to an upstream. */
export interface LastAnswer {
  readonly result: "found" | "absent" | UpstreamFailure;
  readonly atMs: number;
}

/** The last answer of each upstream, for the status page. */
export class LastAnswers {
  readonly #nowMs: () => number;
  readonly #answers = new Map<string, LastAnswer>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  note(upstream: string, reading: NarinfoReading): void {
    const result = reading.kind === "failed" ? reading.reason : reading.kind;
    this.#answers.set(upstream, { result, atMs: this.#nowMs() });
  }

  /** `undefined` before its first answer. */
  of(upstream: string): LastAnswer | undefined {
    return this.#answers.get(upstream);
  }
}
