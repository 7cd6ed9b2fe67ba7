import { clock } from "../../runtime/current.ts";

/** The longest turn of one job: decoders do not yield, and a small file can hold gigabytes. */
const TURN_MS = 4;

/** The slice of a job that takes turns with those of other clients. Most are shorter. */
const SLICE_MS = 48;

/** The pace of a job that decodes on a thread with others. */
export interface Pace {
  /** Call it between two pieces of work, with the output so far. */
  step(decodedBytes: number): Promise<void> | undefined;
  /** Resolves when a decoder may take `bytes` more memory; a throw refuses them. */
  claim(bytes: number): Promise<void>;
  /** Resolves when there may be more input. Missing: the input itself waits. */
  starved?(): Promise<void>;
}

/** Yields to the other jobs of the thread. */
export function sharedPace(claim: Pace["claim"] = () => Promise.resolve()): Pace {
  let turnEndsAtMs = clock.nowMs() + TURN_MS;
  const nextTurn = async () => {
    await clock.soonOver();
    turnEndsAtMs = clock.nowMs() + TURN_MS;
  };
  return { claim, step: () => clock.nowMs() < turnEndsAtMs ? undefined : nextTurn() };
}

/** A job stands still until it may go on. */
export interface Pause {
  /** Processor time since the last pause. */
  readonly usedMs: number;
  readonly decodedBytes: number;
  /** What the job needs beside its turn: more memory, or more input. */
  readonly needs: { readonly memoryBytes: number } | "input";
}

/** The pace of a job that runs in slices: it says when one is over, and waits for the next one. */
export class SlicedPace implements Pace {
  readonly #paused: (pause: Pause) => void;
  #standstill: PromiseWithResolvers<void> | undefined;
  #turnBeganAtMs = clock.nowMs();
  #usedMs = 0;
  #decodedBytes = 0;
  #isOver = false;

  constructor(paused: (pause: Pause) => void) {
    this.#paused = paused;
  }

  step(decodedBytes: number): Promise<void> | undefined {
    this.#decodedBytes = Math.max(this.#decodedBytes, decodedBytes);
    const isDue = clock.nowMs() - this.#turnBeganAtMs >= TURN_MS;
    return isDue || this.#standstill !== undefined || this.#isOver ? this.#yield() : undefined;
  }

  claim(bytes: number): Promise<void> {
    return this.#pause({ memoryBytes: bytes });
  }

  starved(): Promise<void> {
    return this.#pause("input");
  }

  /** The next slice begins. */
  goOn(): void {
    this.#turnBeganAtMs = clock.nowMs();
    this.#standstill?.resolve();
    this.#standstill = undefined;
  }

  /** Ends the job: it throws where it stands. */
  end(): void {
    this.#isOver = true;
    this.goOn();
  }

  async #yield(): Promise<void> {
    this.#note();
    if (this.#usedMs >= SLICE_MS) return await this.#pause({ memoryBytes: 0 });
    await (this.#standstill?.promise ?? clock.soonOver());
    this.#check();
    this.#turnBeganAtMs = clock.nowMs();
  }

  async #pause(needs: Pause["needs"]): Promise<void> {
    // The input and the output of one job may pause both.
    while (this.#standstill !== undefined) await this.#standstill.promise;
    this.#check();
    this.#note();
    const standstill = Promise.withResolvers<void>();
    this.#standstill = standstill;
    const usedMs = this.#usedMs;
    this.#usedMs = 0;
    this.#paused({ usedMs, decodedBytes: this.#decodedBytes, needs });
    await standstill.promise;
    this.#check();
  }

  #note(): void {
    if (this.#standstill !== undefined) return;
    const nowMs = clock.nowMs();
    this.#usedMs += nowMs - this.#turnBeganAtMs;
    this.#turnBeganAtMs = nowMs;
  }

  #check(): void {
    if (this.#isOver) throw new Error("Cannot decode: cancelled");
  }
}
