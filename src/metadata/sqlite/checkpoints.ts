/** What the Worker's global scope is to it. */
export interface CheckpointScope {
  onmessage: ((event: MessageEvent<string>) => void) | null;
  postMessage(message: undefined): void;
}

const WORKER_URL = new URL("./checkpoint_worker.ts", import.meta.url);

/** So many rows, wherever they are in the file, dirty 10 to 60 MiB of pages. */
const ROWS_MAX = 8_000;

/** Each but the first is for the little that was written during the one before. */
const PASSES_MAX = 4;

/**
 * Copies the write-ahead log into the database file in a Worker: it takes two syncs and thousands
 * of writes all over the file, 100 to 200 ms that requests would wait for. The Worker is started
 * when it is first needed. Where it fails it is tried again some thousand rows later, and SQLite
 * does it itself when the log has become long (`wal_autocheckpoint`).
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
   * To be called after each commit, with how many rows the connection has ever written: starts a
   * checkpoint where it is time for one.
   */
  committed(rows: number): void {
    this.#rows = rows;
    if (this.#path === null || this.#running !== undefined || this.#closed) return;
    if (rows - this.#rowsCopied < ROWS_MAX) return;
    this.#running = this.#run(this.#path).finally(() => this.#running = undefined);
  }

  /** Resolves when no checkpoint is under way: whoever writes much, and has time, waits. */
  async over(): Promise<void> {
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#worker?.terminate();
  }

  /** Again for what was written meanwhile: only a log that is copied whole begins anew. */
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
      // Unhandled, it would end the whole process.
      event.preventDefault();
      worker.terminate();
      this.#worker = undefined;
      resolve();
    };
    worker.postMessage(path);
    await promise;
  }
}
