/** Counts the sweeps of the connections: a clock that costs a request nothing. */
export interface Ticks {
  readonly count: number;
}

/**
 * What a connection is about: no byte of a request there ("idle"), a head or a body coming in, a
 * body that nobody wants ("skipping"), the app at work ("answering"), bytes that the client has to
 * take ("sending"), or a last look at what a refused client still sends ("lingering").
 */
export type Phase =
  | "idle"
  | "head"
  | "body"
  | "skipping"
  | "answering"
  | "sending"
  | "lingering";

/** The phase of one connection, and since when. */
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

  /** How many sweeps ago it began. */
  get ticks(): number {
    return this.#ticks.count - this.#since;
  }

  /** Begins anew, also where the phase stays; a body that is skipped has one time for all of it. */
  enter(phase: Phase): void {
    if (this.#phase === "skipping" && phase === "body") return;
    this.#phase = phase;
    this.#since = this.#ticks.count;
  }
}
