import type { FromNarinfoWorker } from "../../src/app/workers/messages.ts";
import { eventually } from "./eventually.ts";

const NARINFO_WORKER_REGEXP = /\/narinfo_worker\.ts$/;

/** Watches the Workers of narinfos that start while it is there, and may end them. */
export class WatchedWorkers implements Disposable {
  readonly #before = globalThis.Worker;
  readonly #workers: Worker[] = [];
  readonly #messages: FromNarinfoWorker[] = [];

  /** `standIn`: starts instead of each. */
  constructor(standIn?: URL) {
    const workers = this.#workers;
    const messages = this.#messages;
    globalThis.Worker = class extends this.#before {
      constructor(url: URL | string, options?: WorkerOptions) {
        const isOurs = NARINFO_WORKER_REGEXP.test(String(url));
        super(isOurs ? standIn ?? url : url, options);
        if (!isOurs) return;
        workers.push(this);
        this.addEventListener("message", ({ data }) => void messages.push(...data));
      }
    };
  }

  /** How many have started so far. */
  get count(): number {
    return this.#workers.length;
  }

  /** How many narinfos they have read. */
  get readings(): number {
    return this.#messages.filter(({ type }) => type === "read").length;
  }

  /** Resolves when a Worker is up. */
  async up(): Promise<void> {
    await eventually("a Worker is up", () => this.#messages.some(({ type }) => type === "pong"));
  }

  /** Ends the latest one, as a crash does. */
  crash(): void {
    this.#workers.at(-1)?.dispatchEvent(new ErrorEvent("error", { message: "it crashed" }));
  }

  [Symbol.dispose](): void {
    globalThis.Worker = this.#before;
  }
}
