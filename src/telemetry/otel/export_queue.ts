/** Records that wait at most. A server under full load makes them in a second or two. */
const WAITING_MAX = 4_096;

/** Records sent at once. */
const BATCH_MAX = 512;

export interface ExportQueueDeps<Item> {
  /** Rejects when the records did not arrive; must end by itself. */
  readonly send: (items: readonly Item[]) => Promise<void>;
  /** Told of records that were lost. */
  readonly dropped: (count: number, reason: string) => void;
  /** How long a record waits for others. */
  readonly delayMs: number;
}

/**
 * Records on their way to a collector that may be absent, slow or frozen: adding one never waits.
 * What does not fit, or does not arrive, is dropped and counted.
 */
export class ExportQueue<Item> {
  readonly #deps: ExportQueueDeps<Item>;
  #waiting: Item[] = [];
  #timer: number | undefined;
  #sending: Promise<void> | undefined;

  constructor(deps: ExportQueueDeps<Item>) {
    this.#deps = deps;
  }

  add(item: Item): void {
    if (this.#waiting.length >= WAITING_MAX) return this.#deps.dropped(1, "the queue is full");
    this.#waiting.push(item);
    if (this.#waiting.length >= BATCH_MAX) this.#start();
    else if (this.#sending === undefined) {
      this.#timer ??= setTimeout(() => this.#start(), this.#deps.delayMs);
    }
  }

  /** Resolves when all that was added is sent, or lost. */
  async flush(): Promise<void> {
    this.#start();
    await this.#sending;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#drain().finally(() => this.#sending = undefined);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      try {
        await this.#deps.send(batch);
      } catch (error) {
        this.#deps.dropped(batch.length, error instanceof Error ? error.message : String(error));
      }
    }
  }
}
