// @ts-types="./pg.d.ts"
import pg from "pg";
import type { Client, ClientConfig, Pool, PoolConfig, Query, Result } from "pg";
import { EitherSignal } from "../../base/either_signal.ts";
import { Failure, messageOf } from "../../base/failure.ts";
import { Notifier } from "../../base/notifier.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import { withoutUrlSecrets } from "../../base/url_secrets.ts";
import { clock, dice } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { OutageLog } from "../../telemetry/outage_log.ts";
import { type Changed, type ChangeFeed, Subscribers } from "../change_feed.ts";
import { closedFailure } from "../metadata_store.ts";

/** How long a query waits for a database that restarts. A longer outage fails queries at once. */
export const AWAY_MAX_MS = 8_000;

/** How long a start waits: a service manager starts larder again afterwards. */
const START_MAX_MS = 30_000;

const PROBE_EVERY_MS = 200;

/** How long the end waits for queries that run. */
const CLOSE_MAX_MS = 1_000;

export interface DatabaseOptions {
  /** `postgres://`; may have a password. */
  readonly url: string;
  readonly log: Logger;
}

interface DatabaseOutage {
  readonly sinceMs: number;
  readonly over: Notifier;
}

/** Connections to one PostgreSQL database. Queries wait for a restart of the server. */
export class Database implements AsyncDisposable {
  #config: PoolConfig;
  #pool: Pool;
  readonly #log: OutageLog<"database-back">;
  readonly #closing = new AbortController();
  #outage: DatabaseOutage | undefined;
  #probing = Promise.resolve();
  readonly #running = new Set<Promise<unknown>>();

  constructor({ url, log }: DatabaseOptions) {
    this.#config = configOf(url);
    this.#pool = poolOf(this.#config);
    this.#log = new OutageLog(log, "database-back");
  }

  /**
   * Runs one statement, and so one transaction. Throws the server's error, or "away" after `waitMs`
   * without a server. Only run a statement that may run twice.
   */
  async query(query: Query, waitMs = AWAY_MAX_MS): Promise<Result["rows"]> {
    const running = this.#query(query, waitMs);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #query(query: Query, waitMs: number): Promise<Result["rows"]> {
    const startedAtMs = clock.nowMs();
    for (;;) {
      await this.#answering(startedAtMs, waitMs);
      const requestedAtMs = clock.nowMs();
      try {
        return (await this.#answer(query)).rows;
      } catch (error) {
        if (this.isClosed) throw closedFailure();
        if (isContention(error) && clock.nowMs() < startedAtMs + AWAY_MAX_MS) continue;
        if (!isAway(error)) throw error;
        this.#away(error, requestedAtMs);
        if (clock.nowMs() >= startedAtMs + waitMs) throw awayFailure(error);
      }
    }
  }

  /** A statement may take long on a server that answers others. Throws where that does not. */
  async #answer(query: Query): Promise<Result> {
    const running = this.#pool.query(query);
    const { query_timeout: limitMs = QUERY_MAX_MS } = query;
    if (limitMs <= QUERY_MAX_MS) return await running;
    running.catch(() => undefined);
    for (;;) {
      const result = await clock.within(running, QUERY_MAX_MS);
      if (result !== undefined) return result;
      try {
        await (await this.connect()).end();
      } catch (error) {
        // A server that refuses one connection more is there.
        if (!(error instanceof pg.DatabaseError)) throw error;
      }
    }
  }

  /** The same for a start, which waits for a server that starts too. Throws a Failure. */
  async connected(): Promise<Client> {
    for (const untilMs = clock.nowMs() + START_MAX_MS;;) {
      try {
        const client = await this.connect();
        this.#log.worked();
        return client;
      } catch (error) {
        const mayPass = isAway(error) && !isDistrust(error) && !isPasswordMissing(error);
        if (!mayPass || clock.nowMs() >= untilMs) throw this.#openFailure(error);
        this.#log.failed("database-away", { error: messageOf(error) });
        await clock.pause(PROBE_EVERY_MS, this.#closing.signal);
      }
    }
  }

  /** A connection of its own, which the caller ends. */
  async connect(): Promise<Client> {
    try {
      return await connect(this.#config);
    } catch (error) {
      const plain = plainConfig(this.#config, error);
      if (plain === undefined) throw error;
      const former = this.#pool;
      this.#config = plain;
      this.#pool = poolOf(plain);
      await former.end();
      return await connect(plain);
    }
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isClosed) return;
    this.#closing.abort();
    this.#outage?.over.notify();
    await this.#probing;
    // The pool forgets those that wait for a connection: they and their timers would live on.
    await clock.within(Promise.allSettled(this.#running), CLOSE_MAX_MS);
    await this.#pool.end();
  }

  /** Resolves when the database answers. Throws "away" when that takes too long. */
  async #answering(startedAtMs: number, waitMs: number): Promise<void> {
    while (this.#outage !== undefined && !this.isClosed) {
      const { sinceMs, over } = this.#outage;
      const untilMs = Math.min(startedAtMs, sinceMs) + waitMs;
      const leftMs = untilMs - clock.nowMs();
      if (leftMs <= 0) throw awayFailure();
      await over.notified(leftMs === Infinity ? undefined : leftMs);
    }
    if (this.isClosed) throw closedFailure();
  }

  #openFailure(error: unknown): Failure {
    const place = withoutUrlSecrets(this.#config.connectionString ?? "").replace(/\?.*$/, "");
    const reason = reasonWithHint(error);
    return new Failure("broken", `Cannot open database ${place}: ${reason}`, {}, error);
  }

  /** `sinceMs`: a server that hangs is away from the query on. */
  #away(error: unknown, sinceMs: number): void {
    if (this.#outage !== undefined || this.isClosed) return;
    this.#log.failed("database-away", { error: messageOf(error) });
    this.#outage = { sinceMs, over: new Notifier() };
    this.#probing = this.#probe(this.#outage);
  }

  /** One probe for all callers that wait. */
  async #probe(outage: DatabaseOutage): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const client = await this.connect();
        await client.end();
        break;
      } catch {
        await clock.pause(PROBE_EVERY_MS, signal);
      }
    }
    this.#outage = undefined;
    if (!signal.aborted) this.#log.worked();
    outage.over.notify();
  }
}

function poolOf(config: PoolConfig): Pool {
  const pool = new pg.Pool(config);
  // An idle connection broke: the next query has another one.
  pool.on("error", () => undefined);
  return pool;
}

/** Where a password comes from, in this order. */
const PASSWORD_HINT = "give it in the URL, --cache-database-password, its -file, or $PGPASSFILE";

/** The reason, and the option that helps. */
function reasonWithHint(error: unknown): string {
  if (isPasswordMissing(error)) return `the server wants a password; ${PASSWORD_HINT}`;
  const reason = messageOf(error);
  if (isLoginRefused(error)) return `${reason}; check the user and the password; ${PASSWORD_HINT}`;
  if (isDistrust(error)) return `${reason}; name its authority: sslrootcert=FILE in the URL`;
  return reason;
}

function awayFailure(error?: unknown): Failure {
  const reason = error === undefined ? "it does not answer" : messageOf(error);
  return new Failure("away", `Cannot use the database: ${reason}`, {}, error);
}

/** Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html */
const AWAY_REGEXP = /^(08|57P0|53300|25006)/;

/** Serialization failure, deadlock, lock timeout. */
const CONTENTION_REGEXP = /^(40001|40P01|55P03)$/;

/** The driver's error where the server wants a password, and there is none. It has no code. */
const NO_PASSWORD_REGEXP = /^SASL: .*client password must be a/;

/** Invalid authorization, invalid password. */
const REFUSED_REGEXP = /^28/;

/** The database does not answer, shuts down, starts, or is a standby: it may be back soon. */
function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return AWAY_REGEXP.test(error.code ?? "");
  // Anything else that is no error of the program comes from the connection.
  return error instanceof Error && !(error instanceof TypeError) && !(error instanceof RangeError);
}

/** The server wants a password, and there is none. */
function isPasswordMissing(error: unknown): boolean {
  return error instanceof Error && NO_PASSWORD_REGEXP.test(error.message);
}

/** The server refuses the user or the password. */
function isLoginRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && REFUSED_REGEXP.test(error.code ?? "");
}

/** The server's certificate is refused, which each Deno says in words of its own. */
function isDistrust(error: unknown): boolean {
  return error instanceof Error && !(error instanceof pg.DatabaseError) &&
    error.message.includes("certificate");
}

/** Two transactions met. The same one succeeds when it runs again. */
function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && CONTENTION_REGEXP.test(error.code ?? "");
}

/** PostgreSQL's types `bigint` and `numeric`. Larder's numbers are below 2^53. */
const NUMBERS: ReadonlySet<number> = new Set([20, 1700]);

const CONNECT_MAX_MS = 3_000;

/** The longest query of a request. A server that does not answer for longer counts as away. */
export const QUERY_MAX_MS = 5_000;

/** Queries at the same time, of one process. */
const CONNECTIONS_MAX = 8;

const NO_TLS = "The server does not support SSL connections";

/** A plain connection is allowed where the server has no TLS: libpq's default. */
const MAY_BE_PLAIN = "prefer";

/** Settings of connections, with the meaning that libpq gives to the URL's parameters. */
function configOf(url: string): PoolConfig {
  const parsed = new URL(url);
  if (!parsed.searchParams.has("sslmode")) parsed.searchParams.set("sslmode", MAY_BE_PLAIN);
  parsed.searchParams.set("uselibpqcompat", "true");
  return {
    connectionString: parsed.href,
    application_name: "larder",
    connectionTimeoutMillis: CONNECT_MAX_MS,
    query_timeout: QUERY_MAX_MS,
    keepAlive: true,
    max: CONNECTIONS_MAX,
    types: {
      getTypeParser: (oid, format) =>
        NUMBERS.has(oid) ? Number : pg.types.getTypeParser(oid, format),
    },
  };
}

/** A connection outside the pool. */
async function connect(config: ClientConfig): Promise<Client> {
  const client = new pg.Client(config);
  // Its queries reject with the same error.
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
  return client;
}

/** The same without TLS, if the URL allows that; call it where `error` ended a connection. */
function plainConfig(config: PoolConfig, error: unknown): PoolConfig | undefined {
  if (!(error instanceof Error) || error.message !== NO_TLS) return undefined;
  const url = new URL(config.connectionString ?? "");
  if (url.searchParams.get("sslmode") !== MAY_BE_PLAIN) return undefined;
  url.searchParams.set("sslmode", "disable");
  return { ...config, connectionString: url.href };
}

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

interface NoticeFeedDeps {
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
