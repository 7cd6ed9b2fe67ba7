import type { Reservation } from "./size_limit.ts";

/** Free room for work that nobody waits for. A client that needs it calls it in. */
export class Loan implements Disposable {
  readonly #reservation: Reservation;
  readonly #calledIn = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  readonly #ended: () => void;

  /** `ended` is called when nobody can call it in any more. */
  constructor(reservation: Reservation, ended: () => void) {
    this.#reservation = reservation;
    this.#ended = ended;
  }

  /** Fires once a client needs the room: its borrower ends the work, and disposes of the loan. */
  get signal(): AbortSignal {
    return this.#calledIn.signal;
  }

  /** From now on it is a reservation like any other. Throws where it was called in before. */
  keep(): Reservation {
    this.signal.throwIfAborted();
    this.#end();
    return this.#reservation;
  }

  /** Resolves when the room is given back, or is kept. */
  callIn(): Promise<void> {
    this.#calledIn.abort(new Error("a client needs the room"));
    return this.#over.promise;
  }

  [Symbol.dispose](): void {
    this.#reservation[Symbol.dispose]();
    this.#end();
  }

  #end(): void {
    this.#ended();
    this.#over.resolve();
  }
}
