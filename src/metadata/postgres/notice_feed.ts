import { EitherSignal } from "../../base/either_signal.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { clock, dice } from "../../runtime/current.ts";
import { type Changed, type ChangeFeed, Subscribers } from "../change_feed.ts";
import type { Client } from "./pg.d.ts";

/** A connection that broke without a word is noticed after this, and the longest query. */
const CHECK_EVERY_MS = 5_000;

const RECONNECT_AFTER_MS = 250;

/** A notice of a transaction, as `notify_members` sends it, or a check's. */
interface Notice {
  /** The writer of the transaction. */
  readonly from?: string;
  readonly all?: boolean;
  readonly storePaths?: Extract<Changed, object>["storePaths"];
  readonly nars?: Extract<Changed, object>["nars"];
  readonly check?: string;
}

export interface NoticeFeedDeps {
  readonly connect: () => Promise<Client>;
  /** This process's own writer, whose notices are not reported. */
  readonly writerId: string;
  readonly checkEveryMs?: number;
}

/**
 * Listens to the notices of other processes on a connection of its own. After a break it reports
 * that everything may have changed.
 */
export class NoticeFeed implements ChangeFeed, AsyncDisposable {
  readonly #deps: NoticeFeedDeps;
  readonly #subscribers = new Subscribers();
  readonly #closing = new AbortController();
  readonly #checks = new Map<string, () => void>();
  #client: Client | undefined;
  #over: Promise<void> = Promise.resolve();

  private constructor(deps: NoticeFeedDeps) {
    this.#deps = deps;
  }

  /** Resolves when it listens: it reports every later change. */
  static async open(deps: NoticeFeedDeps): Promise<NoticeFeed> {
    const feed = new NoticeFeed(deps);
    const broken = await feed.#listen();
    feed.#over = feed.#keepListening(broken);
    return feed;
  }

  subscribe(on: (changed: Changed) => void): AsyncDisposable {
    return this.#subscribers.add(on);
  }

  /** Resolves when every notice from before has arrived. Rejects without a connection. */
  async check(): Promise<void> {
    const check = dice.uuid();
    const arrived = new Promise<void>((resolve) => this.#checks.set(check, resolve));
    try {
      const client = this.#client;
      if (client === undefined) throw new Error("no connection");
      const values = [JSON.stringify({ check } satisfies Notice)];
      await client.query({ text: "SELECT pg_notify('larder', $1)", values });
      await arrived;
    } finally {
      this.#checks.delete(check);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#client?.end().catch(() => undefined);
    await this.#over;
  }

  /** Resolves to a signal that fires when the connection is lost. */
  async #listen(): Promise<AbortSignal> {
    const client = await this.#deps.connect();
    const broken = new AbortController();
    client.on("end", () => broken.abort());
    client.on("notification", ({ payload = "" }) => this.#received(payload));
    await client.query("LISTEN larder");
    this.#client = client;
    return broken.signal;
  }

  async #keepListening(broken: AbortSignal): Promise<void> {
    const { signal } = this.#closing;
    const { checkEveryMs = CHECK_EVERY_MS } = this.#deps;
    while (!signal.aborted) {
      {
        using joined = new EitherSignal(signal, broken);
        const either = joined.signal;
        while (!either.aborted && await this.#isAlive(either)) {
          await clock.pause(checkEveryMs, either);
        }
      }
      await this.#client?.end().catch(() => undefined);
      this.#client = undefined;
      while (!signal.aborted && this.#client === undefined) {
        try {
          broken = await this.#listen();
          this.#subscribers.report("all");
        } catch {
          // The queries of requests report the same error.
          await clock.pause(RECONNECT_AFTER_MS, signal);
        }
      }
    }
    await (this.#client as Client | undefined)?.end().catch(() => undefined);
  }

  async #isAlive(broken: AbortSignal): Promise<boolean> {
    try {
      await unlessAborted(this.check(), broken);
      return true;
    } catch {
      return false;
    }
  }

  #received(payload: string): void {
    const notice = noticeIn(payload);
    // It may be of a newer larder.
    if (notice === undefined) return this.#subscribers.report("all");
    const { from, all, check, storePaths = [], nars = [] } = notice;
    if (check !== undefined) this.#checks.get(check)?.();
    else if (from !== this.#deps.writerId) {
      this.#subscribers.report(all ? "all" : { storePaths, nars });
    }
  }
}

/** `undefined` for another text: each role that may connect to the database may send notices. */
function noticeIn(payload: string): Notice | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const { check = "", storePaths = [], nars = [] } = value as Readonly<Record<string, unknown>>;
    const areWords = typeof check === "string" && isListOfTexts(storePaths) && isListOfTexts(nars);
    return areWords ? value as Notice : undefined;
  } catch {
    return undefined;
  }
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
