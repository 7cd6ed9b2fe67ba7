import type { Timer } from "../../runtime/clock.ts";
import { clock } from "../../runtime/current.ts";
import { type Changed, type ChangeFeed, Subscribers } from "../change_feed.ts";

/** The longest delay until changes of another process are noticed. */
const POLL_EVERY_MS = 1_000;

export interface DataVersionFeedDeps {
  /** `PRAGMA data_version` of the writing connection: only commits of others change it. */
  readonly dataVersion: () => unknown;
  /** The column `stock.revision`: heartbeats, uses and reservations do not raise it. */
  readonly revision: () => number;
  readonly pollEveryMs?: number;
}

/**
 * Polls SQLite's data version while there are subscribers. It costs no read of the database, and
 * heartbeats change it, so the revision decides.
 */
export class DataVersionFeed implements ChangeFeed {
  readonly #deps: DataVersionFeedDeps;
  readonly #subscribers = new Subscribers();
  #timer: Timer | undefined;
  #dataVersion: unknown;
  /** The last revision that was read, plus this connection's raises since. */
  #revision: number | undefined;

  constructor(deps: DataVersionFeedDeps) {
    this.#deps = deps;
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    if (this.#timer === undefined) {
      this.#hasMoved();
      this.#timer = clock.every(this.#deps.pollEveryMs ?? POLL_EVERY_MS, () => this.#poll());
    }
    return this.#subscribers.add(on, () => this.#stopUnused());
  }

  /** Call it once this connection has raised the revision by one: subscribers know its changes. */
  raised(): void {
    // The next poll finds the changes of others.
    if (this.#revision !== undefined) this.#revision++;
  }

  #stopUnused(): void {
    if (!this.#subscribers.isEmpty) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #poll(): void {
    try {
      if (!this.#hasMoved()) return;
    } catch {
      // The next reader of a row reports the same error; a later poll finds the change.
      return;
    }
    this.#subscribers.report("all");
  }

  /** True if another process has raised the revision since the last call. */
  #hasMoved(): boolean {
    const dataVersion = this.#deps.dataVersion();
    if (dataVersion === this.#dataVersion) return false;
    // Read second: a commit between both reads moves the data version once more, and is known.
    const revision = this.#deps.revision();
    const hasMoved = revision !== this.#revision;
    this.#dataVersion = dataVersion;
    this.#revision = revision;
    return hasMoved;
  }
}
