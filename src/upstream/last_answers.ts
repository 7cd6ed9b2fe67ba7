import type { NarinfoReading, UpstreamFailure } from "./upstream.ts";

/** What came of the last narinfo that an upstream was asked for. */
export interface LastAnswer {
  readonly result: "found" | "absent" | UpstreamFailure;
  readonly atMs: number;
}

/** Remembers how each upstream answered last, for whoever looks. */
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

  /** `undefined` until it was asked. */
  of(upstream: string): LastAnswer | undefined {
    return this.#answers.get(upstream);
  }
}
