import type { Changed, ChangeFeed } from "../change_feed.ts";

/** How old what another process has changed may look here. */
const POLL_EVERY_MS = 1_000;

export interface DataVersionFeedDeps {
  /** `PRAGMA data_version` of the connection that writes: only commits of others change it. */
  readonly version: () => unknown;
  readonly pollEveryMs?: number;
}

/** Compares SQLite's data version from time to time, while anybody wants to know. */
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
      // Whoever needs a row meets the same error, and says so; a later look finds the change.
      return;
    }
    if (version === this.#last) return;
    this.#last = version;
    for (const { on } of this.#subscribers) on("all");
  }
}
