import type { Thread, Threads } from "../../runtime/threads.ts";

export interface JobWorkerDeps<Answer extends { readonly id: number }> {
  readonly threads: Threads;
  readonly url: URL;
  /** The first message to each new Worker. */
  readonly start?: unknown;
  /** Fewer permissions than this thread's. */
  readonly permissions?: Deno.PermissionOptionsObject;
  /** The answer for jobs whose Worker died. */
  readonly died: (id: number, detail: string) => Answer;
}

/**
 * A Worker for numbered jobs. It starts with the first job, and again after its death, which ends
 * all its jobs. A job's sender gets every answer until it calls `forget`. A Worker may send several
 * answers in one list.
 */
export class JobWorker<Order, Answer extends { readonly id: number }> implements Disposable {
  readonly #deps: JobWorkerDeps<Answer>;
  readonly #listeners = new Map<number, (answer: Answer) => void>();
  #worker: Thread | undefined;
  #stopped = false;
  #lastId = 0;

  constructor(deps: JobWorkerDeps<Answer>) {
    this.#deps = deps;
  }

  /** Opens a job and returns its number, which every order about it carries. */
  open(listener: (answer: Answer) => void): number {
    const id = ++this.#lastId;
    this.#listeners.set(id, listener);
    return id;
  }

  /** Sends an order, and moves buffers. Once the Worker is disposed of, every job gets `died`. */
  send(order: Order, moved?: ArrayBuffer[]): void {
    if (this.#stopped) return this.end("the server is stopping");
    this.#running().postMessage(order, moved);
  }

  /** The one answer to an order. */
  ask(orderOf: (id: number) => Order): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const id = this.open((answer) => {
      this.forget(id);
      resolve(answer);
    });
    this.send(orderOf(id));
    return promise;
  }

  /** Starts the Worker ahead of the first job, which would wait for its modules. */
  prepare(): void {
    if (!this.#stopped) this.#running();
  }

  forget(id: number): void {
    this.#listeners.delete(id);
  }

  /** Ends the Worker, and its jobs with `died`. The next job starts another one. */
  end(detail: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const [id, listener] of listeners) listener(this.#deps.died(id, detail));
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    this.end("the server is stopping");
  }

  #running(): Thread {
    return this.#worker ??= this.#startWorker();
  }

  #startWorker(): Thread {
    const { threads, url, permissions } = this.#deps;
    const worker = threads.start(url, permissions);
    worker.onmessage = ({ data }) => {
      const answers = (Array.isArray(data) ? data : [data]) as readonly Answer[];
      for (const answer of answers) this.#listeners.get(answer.id)?.(answer);
    };
    worker.onerror = (event) => {
      // An unhandled error would end the whole process.
      event.preventDefault();
      this.end(event.message);
    };
    if (this.#deps.start !== undefined) worker.postMessage(this.#deps.start);
    return worker;
  }
}
