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
