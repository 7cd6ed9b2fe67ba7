import { messageOf } from "../../base/failure.ts";
import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";

/** Limit of waiting records. A server under full load makes them in a second or two. */
const WAITING_MAX = 4_096;

const FULL = `${WAITING_MAX} records wait already`;

/** Records in one export. */
const BATCH_MAX = 512;

export interface ExportQueueDeps<Item> {
  /** Rejects if the export failed. Must have its own timeout. */
  readonly send: (items: readonly Item[]) => Promise<void>;
  /** Called with lost records. */
  readonly dropped: (count: number, reason: string) => void;
  /** Called after an export without a loss meanwhile. */
  readonly delivered: () => void;
  /** Time that a record waits for others. */
  readonly delayMs: number;
}

/**
 * A queue of records for a collector that may be absent, slow or frozen. Adding never waits. It
 * drops and counts records that do not fit, or do not arrive.
 */
export class ExportQueue<Item> {
  readonly #deps: ExportQueueDeps<Item>;
  #waiting: Item[] = [];
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;
  #lostCount = 0;

  constructor(deps: ExportQueueDeps<Item>) {
    this.#deps = deps;
  }

  add(item: Item): void {
    if (this.#waiting.length >= WAITING_MAX) return this.#lose(1, FULL);
    this.#waiting.push(item);
    if (this.#waiting.length >= BATCH_MAX) this.#start();
    else if (this.#sending === undefined) {
      this.#timer ??= clock.after(this.#deps.delayMs, () => this.#start());
    }
  }

  /** Resolves when all added records are sent or lost. */
  async flush(): Promise<void> {
    this.#start();
    await this.#sending;
  }

  #start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending ??= this.#drain().finally(() => this.#sending = undefined);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      const lostBefore = this.#lostCount;
      try {
        await this.#deps.send(batch);
        if (this.#lostCount === lostBefore) this.#deps.delivered();
      } catch (error) {
        this.#lose(batch.length, messageOf(error));
      }
    }
  }

  #lose(count: number, reason: string): void {
    this.#lostCount += count;
    this.#deps.dropped(count, reason);
  }
}
