import pLimit from "p-limit";
import { Failure } from "../../src/base/failure.ts";
import { Notifier } from "../../src/base/notifier.ts";
import type { Change, WriteOptions } from "../../src/metadata/metadata_store.ts";
import { AWAY_MAX_MS, QUERY_MAX_MS } from "../../src/metadata/postgres/database.ts";
import { clock } from "../../src/runtime/current.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { OutageLog } from "../../src/telemetry/outage_log.ts";

/**
 * "breaking": it commits the next kept NAR, whose answer is lost, and then nobody listens.
 * "hanging": connections stay open, and nothing answers. It does what it was sent when it goes on.
 */
export type PostgresFault = "breaking" | "hanging";

/** A PostgreSQL on another machine: how it fails, and for whom. */
export class PlayedPostgres {
  #fault: PostgresFault | "away" | undefined;
  #member: string | undefined;
  #over = Promise.withResolvers<void>();

  /** `member`: the only one that it fails for. Default: all. */
  begin(fault: PostgresFault, member?: string): void {
    this.#fault = fault;
    this.#member = member;
    this.#over = Promise.withResolvers();
  }

  /** Its connections break, and nobody listens any more. */
  broke(): void {
    this.#fault = "away";
  }

  end(): void {
    this.#fault = undefined;
    this.#over.resolve();
  }

  faultFor(member: string): PostgresFault | "away" | undefined {
    return this.#member === undefined || this.#member === member ? this.#fault : undefined;
  }

  /** Resolves at the end of its fault. */
  get over(): Promise<void> {
    return this.#over.promise;
  }
}

export interface PostgresClientParts {
  readonly server: PlayedPostgres;
  readonly member: string;
  readonly log: Logger;
}

/** Connections of a process to the server; others wait for one of them, so long. */
const CONNECTIONS_MAX = 8;
const CONNECT_MAX_MS = 3_000;
const PROBE_EVERY_MS = 200;

/** What `metadata/postgres/writer.ts` sends, one after the other. The server does each once. */
const WRITES: ReadonlySet<string> = new Set(
  ["apply", "evict", "expireNars", "sweepRows", "protect", "recount", "recordHistory"],
);

/**
 * The rows as one process has them through PostgreSQL. It waits, gives up and goes on as
 * `metadata/postgres/database.ts` does, on the clock of the world.
 */
export class PostgresClient {
  readonly #parts: PostgresClientParts;
  readonly #log: OutageLog<"database-back">;
  readonly #oneWrite = pLimit(1);
  #outage: { readonly sinceMs: number; readonly over: Notifier } | undefined;
  #hanging = 0;

  constructor(parts: PostgresClientParts) {
    this.#parts = parts;
    this.#log = new OutageLog(parts.log, "database-back");
  }

  /** The port, whose calls go to the server. */
  of<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function" || typeof name === "symbol" || name === "subscribe") {
          return method;
        }
        return (...args: unknown[]) => {
          const call = this.#call(() => method.apply(target, args), isKeeping(name, args));
          if (!WRITES.has(name)) return call(AWAY_MAX_MS);
          const { mustWait = false } = (name === "apply" ? args[1] ?? {} : {}) as WriteOptions;
          const writing = this.#oneWrite(() => call(AWAY_MAX_MS));
          return mustWait ? writing.catch((error) => waitOn(error, call)) : writing;
        };
      },
    });
  }

  /** A statement that the server does once, however often it is sent. */
  #call<Value>(
    run: () => Promise<Value>,
    isKeeping: boolean,
  ): (waitMs: number) => Promise<Value> {
    let done: Promise<Value> | undefined;
    const sent = (isNow: boolean) => {
      done ??= isNow ? run() : this.#parts.server.over.then(run);
      done.catch(() => undefined);
      return done;
    };
    return async (waitMs) => {
      const startedAtMs = clock.nowMs();
      for (;;) {
        await this.#answering(startedAtMs, waitMs);
        const requestedAtMs = clock.nowMs();
        const { server, member } = this.#parts;
        const fault = server.faultFor(member);
        if (fault === undefined || (fault === "breaking" && !isKeeping)) return await sent(true);
        if (fault === "breaking") {
          sent(true);
          server.broke();
        }
        if (fault === "hanging" && await this.#hangs(() => sent(false)) === "answered") {
          return await sent(false);
        }
        this.#away(requestedAtMs);
        if (clock.nowMs() >= startedAtMs + waitMs) throw awayFailure();
      }
    };
  }

  async #hangs(send: () => Promise<unknown>): Promise<"answered" | "silent"> {
    const { over } = this.#parts.server;
    if (this.#hanging >= CONNECTIONS_MAX) {
      const isOver = await clock.within(over.then(() => true), CONNECT_MAX_MS);
      return isOver ? "answered" : "silent";
    }
    this.#hanging++;
    const answer = send().then(() => "answered" as const, () => "answered" as const);
    const seen = await clock.within(answer, QUERY_MAX_MS);
    this.#hanging--;
    return seen ?? "silent";
  }

  async #answering(startedAtMs: number, waitMs: number): Promise<void> {
    while (this.#outage !== undefined) {
      const { sinceMs, over } = this.#outage;
      const leftMs = Math.min(startedAtMs, sinceMs) + waitMs - clock.nowMs();
      if (leftMs <= 0) throw awayFailure();
      await over.notified(leftMs === Infinity ? undefined : leftMs);
    }
  }

  #away(sinceMs: number): void {
    if (this.#outage !== undefined) return;
    this.#log.failed("database-away", { error: "no answer" });
    const outage = this.#outage = { sinceMs, over: new Notifier() };
    this.#parts.server.over.then(() => clock.pause(PROBE_EVERY_MS)).then(() => {
      this.#outage = undefined;
      this.#log.worked();
      outage.over.notify();
    });
  }
}

function isKeeping(name: string, [changes]: readonly unknown[]): boolean {
  return name === "apply" && (changes as readonly Change[]).some(({ kind }) => kind === "nar-kept");
}

function awayFailure(): Failure {
  return new Failure("away", "Cannot use the database: it does not answer");
}

/** A write that must come to pass waits on outside the queue of the others. */
async function waitOn<Value>(
  error: unknown,
  call: (waitMs: number) => Promise<Value>,
): Promise<Value> {
  if (!(error instanceof Failure) || error.kind !== "away") throw error;
  return await call(Infinity);
}
