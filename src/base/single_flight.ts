export interface Flight<Value> {
  readonly value: Promise<Value>;
  /** True if an earlier caller started the work. */
  readonly joined: boolean;
}

/** Runs the same work once for all simultaneous callers. Remembers no results. */
export class SingleFlight<Key, Value> {
  readonly #flights = new Map<Key, Promise<Value>>();

  /** True while the work for `key` runs. */
  has(key: Key): boolean {
    return this.#flights.has(key);
  }

  /** Joins the running work for `key`, or starts it. A failure reaches every caller. */
  run(key: Key, start: () => Promise<Value>): Flight<Value> {
    const inFlight = this.#flights.get(key);
    if (inFlight !== undefined) return { value: inFlight, joined: true };
    const value = start().finally(() => this.#flights.delete(key));
    this.#flights.set(key, value);
    return { value, joined: false };
  }
}
