import { Failure, messageOf } from "../base/failure.ts";
import type { Seal, StoredName } from "../nix/stored_name.ts";
import { STORAGE } from "../telemetry/events.ts";
import type { Logger } from "../telemetry/logger.ts";
import { OutageLog } from "../telemetry/outage_log.ts";
import type { ListedNar, ListOptions, NarStore, OpenOptions, StoredNar } from "./nar_store.ts";

/** A failure that took so long was a timeout. */
const SLOW_MS = 2_000;

/** Beginning of the names in a list for a probe: few NARs have it. */
const LISTED_PREFIX = "0000";

/** How long requests pass by a store that let one of them wait for nothing. */
const PASS_BY_MS = 5_000;

/** A store that took or answered nothing for so long after a failure is away. */
const AWAY_AFTER_MS = 2_000;

/** The operations of a store, and the read of its mark. */
type Operation = "open" | "put" | "remove" | "list" | "mark";

export interface WatchedNarStoreDeps {
  /** A small object of the store, for probes. Default: none. */
  readonly mark?: () => Promise<unknown>;
  readonly log: Logger;
  readonly nowMs: () => number;
}

/**
 * Logs when a store on another machine becomes unavailable, and when each operation that failed
 * works again. While it does not answer, only one request in five seconds waits for it.
 */
export class WatchedNarStore implements NarStore {
  readonly #inner: NarStore;
  readonly #deps: WatchedNarStoreDeps;
  readonly #outage;
  /** The operations that failed, and have not worked since. */
  readonly #failing = new Set<Operation>();
  #passByUntilMs = -Infinity;
  /** The first failure to put since the last object that was taken. */
  #noPutSinceMs = Infinity;
  /** The first failure to read the mark since the last operation that worked. */
  #silentSinceMs = Infinity;

  constructor(inner: NarStore, deps: WatchedNarStoreDeps) {
    this.#inner = inner;
    this.#deps = deps;
    this.#outage = new OutageLog(deps.log, "nar-store-back");
  }

  async open(at: StoredName, options: OpenOptions): Promise<StoredNar | undefined> {
    if (this.#deps.nowMs() < this.#passByUntilMs) {
      const message = "Cannot open NAR file: the store was silent just now";
      throw new Failure("unavailable", message, { part: STORAGE });
    }
    return await this.#watched("open", () => this.#inner.open(at, options));
  }

  get isAway(): boolean {
    // A put to a silent store waits for a minute before it fails.
    const sinceMs = Math.min(this.#noPutSinceMs, this.#silentSinceMs);
    return this.#deps.nowMs() >= sinceMs + AWAY_AFTER_MS;
  }

  /** A store that is full or takes no object may well remove some. */
  get isSilent(): boolean {
    return this.#deps.nowMs() >= this.#silentSinceMs + AWAY_AFTER_MS;
  }

  put(at: StoredName, path: string): Promise<Seal> {
    return this.#watched("put", () => this.#inner.put(at, path));
  }

  remove(at: StoredName): Promise<boolean> {
    return this.#watched("remove", () => this.#inner.remove(at));
  }

  async *list(prefix: string, options?: ListOptions): AsyncIterable<ListedNar> {
    try {
      yield* this.#inner.list(prefix, options);
      this.#worked("list");
    } catch (error) {
      this.#failed("list", error);
      throw error;
    }
  }

  /**
   * Finds out, without a client, whether the store answers. During an outage, `trial` must store,
   * read and remove an object through this store. Never rejects.
   */
  async probe(trial: () => Promise<unknown>): Promise<void> {
    const { mark = () => Promise.resolve() } = this.#deps;
    try {
      await this.#watched("mark", mark);
      if (this.#failing.size === 0) return;
      if (this.#failing.has("list")) await this.#listSome();
      this.#passByUntilMs = -Infinity;
      await trial();
    } catch {
      // The log has it.
    }
  }

  async #listSome(): Promise<void> {
    for await (const _ of this.list(LISTED_PREFIX)) break;
    // A reader that leaves early ends the list without its end.
    this.#worked("list");
  }

  async #watched<Result>(operation: Operation, run: () => Promise<Result>): Promise<Result> {
    const startedAtMs = this.#deps.nowMs();
    try {
      const result = await run();
      this.#worked(operation);
      return result;
    } catch (error) {
      this.#failed(operation, error, startedAtMs);
      throw error;
    }
  }

  #worked(operation: Operation): void {
    this.#passByUntilMs = -Infinity;
    this.#silentSinceMs = Infinity;
    if (operation === "put") this.#noPutSinceMs = Infinity;
    if (this.#failing.delete(operation) && this.#failing.size === 0) this.#outage.worked();
  }

  #failed(operation: Operation, error: unknown, startedAtMs?: number): void {
    if (!(error instanceof Failure) || error.kind !== "unavailable") return;
    const nowMs = this.#deps.nowMs();
    if (startedAtMs !== undefined && nowMs - startedAtMs >= SLOW_MS) {
      this.#passByUntilMs = nowMs + PASS_BY_MS;
    }
    this.#failing.add(operation);
    if (operation === "put") this.#noPutSinceMs = Math.min(this.#noPutSinceMs, nowMs);
    if (operation === "mark") this.#silentSinceMs = Math.min(this.#silentSinceMs, nowMs);
    this.#outage.failed("nar-store-away", { error: messageOf(error) });
  }
}
