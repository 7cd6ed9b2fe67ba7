import type { Facts } from "../base/failure.ts";
import type { Logger } from "./logger.ts";

/** The first log line of an outage. */
export interface OutageLine {
  readonly level: "warn" | "error";
  readonly message: string;
}

/**
 * Logs the begin and the end of a lasting outage, such as a full disk. Repeats have level debug.
 */
export class OutageLog {
  readonly #log: Logger;
  readonly #over: string | undefined;
  #state: string | undefined;
  #startedAtMs = 0;
  #count = 0;

  /** `over`: the message at its end, if any. */
  constructor(log: Logger, over?: string) {
    this.#log = log;
    this.#over = over;
  }

  /** Logs the first failure of an outage, and each change of its `state`. */
  failed({ level, message }: OutageLine, facts: Facts = {}, state = message): void {
    this.#log[state === this.#state ? "debug" : level](message, facts);
    if (this.#state === undefined) this.#startedAtMs = performance.now();
    this.#state = state;
    this.#count++;
  }

  /** Logs the end of an outage, with its failures and its duration. */
  worked(facts: Facts = {}): void {
    if (this.#state === undefined) return;
    const duration_ms = Math.round(performance.now() - this.#startedAtMs);
    if (this.#over !== undefined) {
      this.#log.info(this.#over, { ...facts, times: this.#count, duration_ms });
    }
    this.#state = undefined;
    this.#count = 0;
  }
}
