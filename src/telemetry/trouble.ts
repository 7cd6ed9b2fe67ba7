import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";

/** What is said when it begins, and what when it is over. */
export interface TroubleWords {
  readonly level: "warn" | "error";
  readonly begun: string;
  readonly over: string;
}

/** A trouble that lasts, such as a full disk: the log says it once, and once that it is over. */
export class Trouble {
  readonly #log: Logger;
  readonly #words: TroubleWords;
  #since: number | undefined;
  #count = 0;

  constructor(log: Logger, words: TroubleWords) {
    this.#log = log;
    this.#words = words;
  }

  /** It is there; said the first time and when it is news, and for debugging after. */
  met(facts: Facts = {}, isNews = false): void {
    const { level, begun } = this.#words;
    this.#log[isNews || this.#since === undefined ? level : "debug"](begun, facts);
    this.#since ??= performance.now();
    this.#count++;
  }

  /** It is not there; said when it was, with how often it was met. */
  over(facts: Facts = {}): void {
    if (this.#since === undefined) return;
    const duration_ms = Math.round(performance.now() - this.#since);
    this.#log.info(this.#words.over, { ...facts, times: this.#count, duration_ms });
    this.#since = undefined;
    this.#count = 0;
  }
}
