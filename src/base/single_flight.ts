export interface Flight<Value> {
  readonly value: Promise<Value>;
  /** True when the work had been started by an earlier caller. */
  readonly joined: boolean;
}

/** Does the same work once for all who ask for it at the same time. Nothing is remembered after. */
export class SingleFlight<Key, Value> {
  readonly #flights = new Map<Key, Promise<Value>>();

  /** Joins the work under way for `key`, or starts it. A failure reaches everybody who joined. */
  run(key: Key, start: () => Promise<Value>): Flight<Value> {
    const underWay = this.#flights.get(key);
    if (underWay !== undefined) return { value: underWay, joined: true };
    const value = start().finally(() => this.#flights.delete(key));
    this.#flights.set(key, value);
    return { value, joined: false };
  }
}
