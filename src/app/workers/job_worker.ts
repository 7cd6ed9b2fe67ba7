export interface JobWorkerDeps<Answer extends { readonly id: number }> {
  readonly url: URL;
  /** Sent first to each new Worker. */
  readonly start?: unknown;
  /** What a job is told when its Worker has died. */
  readonly died: (id: number, detail: string) => Answer;
}

/**
 * A Worker that does numbered jobs. It is started with the first job, and anew after it has died:
 * all its jobs are told so. Whoever sent a job hears every answer to it until it says `forget`.
 */
export class JobWorker<Order, Answer extends { readonly id: number }> implements Disposable {
  readonly #deps: JobWorkerDeps<Answer>;
  readonly #listeners = new Map<number, (answer: Answer) => void>();
  #worker: Worker | undefined;
  #stopped = false;
  #lastId = 0;

  constructor(deps: JobWorkerDeps<Answer>) {
    this.#deps = deps;
  }

  /** Opens a job; its number goes into every order about it. */
  open(listener: (answer: Answer) => void): number {
    const id = ++this.#lastId;
    this.#listeners.set(id, listener);
    return id;
  }

  /** After the Worker is disposed of, every job is told that it died. */
  send(order: Order): void {
    if (this.#stopped) return this.#end("the server is stopping");
    this.#worker ??= this.#startWorker();
    this.#worker.postMessage(order);
  }

  forget(id: number): void {
    this.#listeners.delete(id);
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    this.#end("the server is stopping");
  }

  #startWorker(): Worker {
    const worker = new Worker(this.#deps.url, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#listeners.get(data.id)?.(data);
    worker.onerror = (event) => {
      // Unhandled, it would end the whole process.
      event.preventDefault();
      this.#end(event.message);
    };
    if (this.#deps.start !== undefined) worker.postMessage(this.#deps.start);
    return worker;
  }

  #end(detail: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const [id, tell] of listeners) tell(this.#deps.died(id, detail));
  }
}
