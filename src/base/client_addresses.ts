/** larder counts further addresses, and does not list them. */
const LISTED_MAX = 5;

/** The clients of one NAR file in flight. */
export interface ListedClients {
  /** Different addresses. */
  readonly count: number;
  /** The first of them. */
  readonly addresses: readonly string[];
}

/** The addresses of the clients of one NAR file in flight. */
export class ClientAddresses {
  readonly #requests = new Map<string, number>();

  /** Counts one request of an address until the scope of the result ends. */
  enter(address: string | undefined): Disposable {
    using held = new DisposableStack();
    if (address !== undefined) {
      this.#requests.set(address, (this.#requests.get(address) ?? 0) + 1);
      held.defer(() => this.#leave(address));
    }
    return held.move();
  }

  listed(): ListedClients {
    return {
      count: this.#requests.size,
      addresses: this.#requests.keys().take(LISTED_MAX).toArray(),
    };
  }

  #leave(address: string): void {
    const left = (this.#requests.get(address) ?? 1) - 1;
    if (left > 0) this.#requests.set(address, left);
    else this.#requests.delete(address);
  }
}
