import type { Facts } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import type { Logger } from "./logger.ts";
import type { Outage } from "./outages.ts";

/**
 * Logs the begin and the end of a lasting outage, such as a full disk. Repeats have level debug.
 */
export class OutageLog<Message extends string> {
  readonly #log: Logger;
  readonly #outage: Outage<Message>;
  #state: string | undefined;
  #startedAtMs = 0;
  #count = 0;

  constructor(log: Logger, outage: Outage<Message>) {
    this.#log = log;
    this.#outage = outage;
  }

  /** Logs the first failure of an outage, and each change of its `state`, with a hint. */
  failed(message: Message, facts: Facts = {}, state: string = message): void {
    const { level, begins, isState = false } = this.#outage;
    const hint = facts["hint"] ?? begins[message];
    this.#log[state === this.#state ? "debug" : level](message, { ...facts, hint });
    if (this.#state === undefined) this.#startedAtMs = clock.nowMs();
    if (this.#state === undefined || !isState) this.#count++;
    this.#state = state;
  }

  /** True from its first failure until it works again. */
  get isPresent(): boolean {
    return this.#state !== undefined;
  }

  /** Tries again what failed, while the outage lasts; ends it if that works. Never rejects. */
  async probe(attempt: () => Promise<unknown>): Promise<void> {
    const count = this.#count;
    if (!this.isPresent) return;
    try {
      await attempt();
    } catch {
      return;
    }
    // What failed meanwhile is not known to work.
    if (this.#count === count) this.worked();
  }

  /** Logs the end of an outage, with its failures and its duration. */
  worked(facts: Facts = {}): void {
    if (this.#state === undefined) return;
    const duration_ms = clock.nowMs() - this.#startedAtMs;
    this.#log.info(this.#outage.over, { ...facts, times: this.#count, duration_ms });
    this.#state = undefined;
    this.#count = 0;
  }
}
