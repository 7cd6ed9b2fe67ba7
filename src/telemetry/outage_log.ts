import type { Facts } from "../base/failure.ts";
import { clock } from "../runtime/current.ts";
import { type BegunUntil, type EventKind, EVENTS } from "./events.ts";
import type { Logger } from "./logger.ts";

/**
 * Logs the begin and the end of a lasting outage, such as a full disk. Repeats have level debug.
 */
export class OutageLog<End extends EventKind> {
  readonly #log: Logger;
  readonly #end: End;
  #state: string | undefined;
  #startedAtMs = 0;
  #count = 0;

  constructor(log: Logger, end: End) {
    this.#log = log;
    this.#end = end;
  }

  /** Logs the first failure of an outage, and each change of its `state`, with a hint. */
  failed(kind: BegunUntil<End>, facts?: Facts, state: string = kind): void {
    const { level, isState = false } = EVENTS[kind];
    this.#log.event(kind, facts, state === this.#state ? "debug" : level);
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
    this.#log.event(this.#end, { ...facts, times: this.#count, duration_ms });
    this.#state = undefined;
    this.#count = 0;
  }
}
