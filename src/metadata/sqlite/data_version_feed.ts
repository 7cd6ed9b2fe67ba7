import type { Changed, ChangeFeed } from "../change_feed.ts";

/** The longest delay until changes of another process are noticed. */
const POLL_EVERY_MS = 1_000;

export interface DataVersionFeedDeps {
  /** `PRAGMA data_version` of the writing connection: only commits of others change it. */
  readonly version: () => unknown;
  readonly pollEveryMs?: number;
}

/** Polls SQLite's data version while there are subscribers. */
export class DataVersionFeed implements ChangeFeed {
  readonly #version: () => unknown;
  readonly #pollEveryMs: number;
  readonly #subscribers = new Set<{ readonly on: (changed: Changed) => void }>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #last: unknown;

  constructor({ version, pollEveryMs = POLL_EVERY_MS }: DataVersionFeedDeps) {
    this.#version = version;
    this.#pollEveryMs = pollEveryMs;
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    const subscriber = { on };
    if (this.#timer === undefined) {
      this.#last = this.#version();
      this.#timer = setInterval(() => this.#poll(), this.#pollEveryMs);
    }
    this.#subscribers.add(subscriber);
    return {
      [Symbol.asyncDispose]: () => {
        this.#subscribers.delete(subscriber);
        if (this.#subscribers.size === 0) this.#stop();
        return Promise.resolve();
      },
    };
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #poll(): void {
    let version: unknown;
    try {
      version = this.#version();
    } catch {
      // The next reader of a row reports the same error; a later poll finds the change.
      return;
    }
    if (version === this.#last) return;
    this.#last = version;
    for (const { on } of this.#subscribers) {
      try {
        on("all");
      } catch (error) {
        reportError(error);
      }
    }
  }
}
