import { type IdGenerator, RandomIdGenerator } from "@opentelemetry/sdk-trace";
import { dice } from "../../runtime/current.ts";

const WORDS = 2 ** 32;

/**
 * Generates the ids of new traces and decides by the id whether each is sampled, so other services
 * with a ratio agree. The JavaScript SDKs compare the XOR of an id's four words, Go and Python its
 * lower half. Here the third word equals both.
 */
export class RootTraceIds implements IdGenerator {
  readonly #others = new RandomIdGenerator();
  readonly #bound: number;
  #word = 0;

  /** `ratio`: share of sampled traces. */
  constructor(ratio: number) {
    // As in `TraceIdRatioBasedSampler`.
    this.#bound = ratio === 1 ? WORDS : Math.floor(ratio * (WORDS - 1));
  }

  /** True if the next trace is sampled. Costs one random number. */
  next(): boolean {
    this.#word = randomWord();
    return this.#word < this.#bound;
  }

  generateTraceId(): string {
    // An id of zeros is invalid.
    const first = randomWord() || 1;
    const second = randomWord();
    return hex(first) + hex(second) + hex(this.#word) + hex((first ^ second) >>> 0);
  }

  generateSpanId(): string {
    return this.#others.generateSpanId();
  }
}

function randomWord(): number {
  return dice.fraction() * WORDS >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
