/** Counts the sweeps over all connections: a clock without cost for a request. */
export interface Ticks {
  readonly count: number;
}

/**
 * The phase of a connection: no byte of a request yet ("idle"), head or body arriving, an unused
 * body ("skipping"), the app at work ("answering"), the client reading ("sending"), or a refused
 * client that still sends ("lingering").
 */
export type Phase =
  | "idle"
  | "head"
  | "body"
  | "skipping"
  | "answering"
  | "sending"
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
