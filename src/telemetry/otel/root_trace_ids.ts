import { type IdGenerator, RandomIdGenerator } from "@opentelemetry/sdk-trace";

const WORDS = 2 ** 32;

/**
 * Draws the ids of the traces that begin here, and so which of them are sampled: by the id, so
 * that other services with a ratio agree. The SDKs for JavaScript compare the XOR of an id's four
 * words with it, those for Go and Python the id's lower half; here the third word is both.
 */
export class RootTraceIds implements IdGenerator {
  readonly #others = new RandomIdGenerator();
  readonly #bound: number;
  #word = 0;

  /** `ratio` of the traces are sampled. */
  constructor(ratio: number) {
    // As `TraceIdRatioBasedSampler` has it.
    this.#bound = ratio === 1 ? WORDS : Math.floor(ratio * (WORDS - 1));
  }

  /** Whether the next trace is sampled; that costs one random number. */
  next(): boolean {
    this.#word = randomWord();
    return this.#word < this.#bound;
  }

  generateTraceId(): string {
    // Not all may be 0.
    const first = randomWord() || 1;
    const second = randomWord();
    return hex(first) + hex(second) + hex(this.#word) + hex((first ^ second) >>> 0);
  }

  generateSpanId(): string {
    return this.#others.generateSpanId();
  }
}

function randomWord(): number {
  return Math.random() * WORDS >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
