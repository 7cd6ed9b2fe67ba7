import { Failure, messageOf } from "../base/failure.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import { OUTAGES } from "../telemetry/outages.ts";
import type { ListedNar, ListOptions, NarStore, OpenOptions, StoredNar } from "./nar_store.ts";

/** A failure that took so long was a timeout. */
const SLOW_MS = 2_000;

/** How long requests pass by a store that let one of them wait for nothing. */
const PASS_BY_MS = 5_000;

/**
 * Logs when a store on another machine becomes unavailable, and when it is back. While it does not
 * answer, only one request in five seconds waits for it.
 */
export class WatchedNarStore implements NarStore {
  readonly #inner: NarStore;
  readonly #outage;
  readonly #nowMs: () => number;
  #passByUntilMs = -Infinity;

  constructor(
    inner: NarStore,
    { log, nowMs }: { readonly log: Logger; readonly nowMs: () => number },
  ) {
    this.#inner = inner;
    this.#nowMs = nowMs;
    this.#outage = new OutageLog(log, OUTAGES.narStore);
  }

  async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
    const startedAtMs = this.#nowMs();
    if (startedAtMs < this.#passByUntilMs) {
      throw new Failure("unavailable", "Cannot open NAR file: the store was silent just now");
    }
    try {
      const stored = await this.#inner.open(at, options);
      this.#outage.worked();
      return stored;
    } catch (error) {
      if (!(error instanceof Failure) || error.kind !== "unavailable") throw error;
      const nowMs = this.#nowMs();
      if (nowMs - startedAtMs >= SLOW_MS) this.#passByUntilMs = nowMs + PASS_BY_MS;
      this.#outage.failed("nar store unavailable: nars pass through", {
        error: messageOf(error),
      });
      throw error;
    }
  }

  put(at: StoredName, path: string): Promise<Seal> {
    return this.#inner.put(at, path);
  }

  remove(at: StoredName): Promise<boolean> {
    return this.#inner.remove(at);
  }

  list(prefix: string, options?: ListOptions): AsyncIterable<ListedNar> {
    return this.#inner.list(prefix, options);
  }
}
