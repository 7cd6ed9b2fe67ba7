/** The Worker's global scope. */
export interface CheckpointScope {
  onmessage: ((event: MessageEvent<string>) => void) | null;
  postMessage(message: undefined): void;
}

const WORKER_URL = new URL("./checkpoint_worker.ts", import.meta.url);

/** Rows between two checkpoints. They dirty 10 to 60 MiB of pages, depending on their places. */
const ROWS_MAX = 8_000;

/** Each pass after the first copies the little that was written during the one before. */
const PASSES_MAX = 4;

/**
 * Copies the write-ahead log into the database file in a Worker: two syncs and thousands of writes
 * would stop requests for 100 to 200 ms. The first checkpoint starts the Worker. After an error the
 * Worker tries again some thousand rows later. If the log becomes long, SQLite copies it itself
 * (`wal_autocheckpoint`).
 */
export class Checkpoints implements AsyncDisposable {
  readonly #path: string | null;
  #worker: Worker | undefined;
  #running: Promise<void> | undefined;
  #closed = false;
  #rows = 0;
  #rowsCopied = 0;

  /** `null` for a database in memory, which has no log. */
  constructor(path: string | null) {
    this.#path = path;
  }

  /**
   * Starts a checkpoint when it is due. Call it after each commit, with the count of all rows that
   * the connection has written.
   */
  committed(rows: number): void {
    this.#rows = rows;
    if (this.#path === null || this.#running !== undefined || this.#closed) return;
    if (rows - this.#rowsCopied < ROWS_MAX) return;
    this.#running = this.#run(this.#path).finally(() => this.#running = undefined);
  }

  /** Resolves when no checkpoint is running: large writes that can wait do so. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#worker?.terminate();
  }

  /** Copies again the pages written meanwhile: only a fully copied log starts anew. */
  async #run(path: string): Promise<void> {
    for (let pass = 0; pass < PASSES_MAX && this.#rowsCopied !== this.#rows; pass++) {
      const rows = this.#rows;
      await this.#copy(path);
      this.#rowsCopied = rows;
      if (this.#closed) return;
    }
  }

  async #copy(path: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const worker = this.#worker ??= new Worker(WORKER_URL, { type: "module" });
    worker.onmessage = () => resolve();
    worker.onerror = (event) => {
      // An unhandled error would end the process.
      event.preventDefault();
      worker.terminate();
      this.#worker = undefined;
      resolve();
    };
    worker.postMessage(path);
    await promise;
  }
}
