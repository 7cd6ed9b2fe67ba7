/** Counts the sweeps over all connections: a clock without cost for a request. */
export interface Ticks {
  readonly count: number;
}

/** The phase of a connection. */
export type Phase =
  /** No byte of a request has arrived. */
  | "idle"
  | "head"
  | "body"
  /** A body that the app does not need arrives. */
  | "skipping"
  /** The app is at work. */
  | "answering"
  /** A wrong token: the answer waits on purpose. */
  | "held"
  /** The client reads. */
  | "sending"
  /** A refused client still sends. */
  | "lingering";

/** The phase of one connection, and its age. */
export class Activity {
  readonly #ticks: Ticks;
  #phase: Phase = "idle";
  #since: number;

  constructor(ticks: Ticks) {
    this.#ticks = ticks;
    this.#since = ticks.count;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The age of the phase in sweeps. */
  get ticks(): number {
    return this.#ticks.count - this.#since;
  }

  /** Starts the phase again, even the same one. But "skipping" has one limit for its whole body. */
  enter(phase: Phase): void {
    if (this.#phase === "skipping" && phase === "body") return;
    this.#phase = phase;
    this.#since = this.#ticks.count;
  }
}

/** Longest time without progress by phase; `undefined`: no limit. */
export type PhaseLimits = Readonly<Record<Phase, number | undefined>>;

const SECOND_MS = 1_000;

/** Limits in milliseconds. They are no options, as no well-behaved client meets them. */
export const PHASE_LIMITS_MS: PhaseLimits = {
  // As nginx; a client keeps a connection for the next path of a closure.
  idle: 75 * SECOND_MS,
  // From its first byte to its last. A head has a few hundred bytes and leaves in one packet, so a
  // byte a second is no progress.
  head: 20 * SECOND_MS,
  // Between two pieces.
  body: 30 * SECOND_MS,
  // From the first byte to the last: the answer waits for it.
  skipping: 20 * SECOND_MS,
  // The upstreams have timeouts of their own.
  answering: undefined,
  held: undefined,
  // Between two pieces. Nix aborts a transfer that stalls for 300 seconds, and stalls one itself
  // while it unpacks.
  sending: 300 * SECOND_MS,
  // Between two pieces.
  lingering: 5 * SECOND_MS,
};

/** The logged reason for closing a connection without progress. */
export const OVERDUE_REASON: Readonly<Record<Phase, string>> = {
  idle: "no request",
  head: "incomplete request",
  body: "incomplete request body",
  skipping: "incomplete request body",
  answering: "no answer",
  held: "no answer",
  sending: "stalled client",
  lingering: "refused client stays connected",
};
