import { messageOf } from "../../base/failure.ts";
import { clock, dice } from "../../runtime/current.ts";
import { BUSY_STATUSES } from "../upstream_load.ts";

const RETRIES_MAX = 2;

/** A longer Retry-After means no retry: a client waits for the answer. */
const PAUSE_MAX_MS = 1_000;

/** Pauses without Retry-After, by retry; a random half is added to each. */
const PAUSES_MS = [20, 100];

/** The retries of one request: how many, and after which pauses. All end within `limitMs`. */
export class Retries {
  readonly #limitMs: number;
  readonly #startedAtMs = clock.nowMs();
  #count = 0;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** The pause before the next attempt; `undefined`: the answer is final. */
  after({ status, headers }: Response): number | undefined {
    if (!BUSY_STATUSES.has(status)) return undefined;
    const wanted = headers.get("retry-after");
    return this.#next(wanted === null ? undefined : waitOf(wanted, headers.get("date")));
  }

  /** The same for an answer that did not come, or broke off. */
  afterError(error: unknown): number | undefined {
    // Connection refused, certificate not trusted, or port blocked: a retry changes nothing.
    if (/\(Connect\)|Requests to port \d+ are blocked/.test(messageOf(error))) return undefined;
    return this.#next();
  }

  #next(wantedMs = PAUSES_MS[this.#count] ?? Infinity): number | undefined {
    const pauseMs = wantedMs + dice.fraction() * (PAUSES_MS[this.#count] ?? 0) / 2;
    const leftMs = this.#limitMs - (clock.nowMs() - this.#startedAtMs);
    if (this.#count >= RETRIES_MAX || wantedMs > PAUSE_MAX_MS || pauseMs >= leftMs) {
      return undefined;
    }
    this.#count++;
    return pauseMs;
  }
}

/** Retry-After in ms: seconds, or a date by the clock of the response's own Date. */
function waitOf(retryAfter: string, date: string | null): number {
  if (/^[0-9]+$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const nowMs = Date.parse(date ?? "") || clock.wallMs();
  const untilMs = Date.parse(retryAfter);
  return Number.isNaN(untilMs) ? Infinity : Math.max(0, untilMs - nowMs);
}
