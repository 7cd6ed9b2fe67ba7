import type { DatabasePlace } from "../../src/app/back_ends/metadata_back_end.ts";
import { clock } from "../../src/runtime/current.ts";
import type { FakeUpstream } from "../../tests/support/fake_upstream.ts";
import { FaultProxy } from "../../tests/support/fault_proxy.ts";
import { freePort } from "../../tests/support/free_port.ts";
import {
  type LarderFlags,
  type LarderProcess,
  startLarder,
} from "../../tests/support/larder_process.ts";
import { PostgresServer } from "../../tests/support/postgres.ts";
import { RedisServer } from "../../tests/support/redis_server.ts";
import { S3FaultProxy } from "../../tests/support/s3_fault_proxy.ts";
import { S3_UNAVAILABLE, s3Flags, S3Server } from "../../tests/support/s3_server.ts";
import { Scrape } from "../../tests/support/scrape.ts";
import { tempFolder } from "../../tests/support/temp_folder.ts";
import type { Health } from "./upstream_requests.ts";

const REPLICAS = 3;

const COUNT_EVERY_MS = 1_000;

/** Nothing is away. */
export const WELL: Health = { isShared: true, isReadable: true };

/** One larder of several, which the others reach through a proxy that can fail. */
interface Replica {
  readonly port: number;
  readonly proxy: FaultProxy;
  larder: LarderProcess | undefined;
}

/** Larders on one store of NAR files, one database and one Redis. */
export class Cluster implements AsyncDisposable {
  readonly redis: RedisServer;
  /** `undefined` where it is not installed: then the database is an SQLite file. */
  readonly postgres: PostgresServer | undefined;
  /** In front of the S3 server; `undefined` where none is built: NAR files are in a folder. */
  readonly s3: S3FaultProxy | undefined;
  readonly replicas: readonly Replica[];
  readonly #flags: LarderFlags;
  /** Until every larder has found the failed servers again. */
  health: Health = WELL;
  /** Log lines of level warn and above, by message. */
  readonly warnings = new Map<string, number>();
  /** Entries that each process evicted. */
  readonly #evicted = new Map<LarderProcess, number>();
  readonly #opened: AsyncDisposable;

  private constructor(
    parts: Pick<Cluster, "redis" | "postgres" | "s3" | "replicas">,
    flags: LarderFlags,
    opened: AsyncDisposable,
  ) {
    this.redis = parts.redis;
    this.postgres = parts.postgres;
    this.s3 = parts.s3;
    this.replicas = parts.replicas;
    this.#flags = flags;
    this.#opened = opened;
  }

  static async start(upstream: FakeUpstream, limitMegabytes: number): Promise<Cluster> {
    await using opening = new AsyncDisposableStack();
    const storage = opening.use(tempFolder()).path;
    const redis = opening.use(await RedisServer.open());
    const postgres = PostgresServer.start();
    const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;
    const s3 = server && opening.use(new S3FaultProxy(server.port));
    const replicas = Array.from({ length: REPLICAS }, (): Replica => {
      const port = freePort();
      const proxy = opening.use(new FaultProxy({ targetPort: port }));
      return { port, proxy, larder: undefined };
    });
    const flags = {
      "cache-storage-local": storage,
      "cache-upstream-url": upstream.url,
      "cache-upstream-public-key": upstream.publicKey,
      "cache-redis-addrs": redis.address,
      "cache-negative-ttl": "1s",
      "cache-max-size": `${limitMegabytes}M`,
      "prometheus-enabled": "true",
      ...(postgres === undefined ? {} : { "cache-database-url": postgres.createDatabase() }),
      ...(server === undefined || s3 === undefined ? {} : s3Flags(server.bucket(s3.port))),
    };
    const parts = { redis, postgres, s3, replicas };
    const cluster = new Cluster(parts, flags, opening.move());
    for (const replica of replicas) await cluster.start(replica);
    return cluster;
  }

  /** The place of the database. */
  get database(): DatabasePlace {
    const { "cache-database-url": url, "cache-storage-local": folder } = this.#flags;
    if (typeof url === "string") return { kind: "postgres", url };
    return { kind: "sqlite", path: `${folder}/db.sqlite` };
  }

  /** The words that name the stores to a command. */
  get places(): readonly string[] {
    return Object.entries(this.#flags)
      .filter(([name]) => /^cache-(storage|database)-/.test(name))
      .map(([name, value]) => `--${name}=${value}`);
  }

  /** At least: a killed larder may have evicted some more in its last second. */
  get evictedEntries(): number {
    return [...this.#evicted.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Counts the evicted entries each second until `isOver`. */
  async countEvictions(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await clock.pause(COUNT_EVERY_MS);
      await Promise.all(this.replicas.map(({ larder }) => larder && this.#count(larder)));
    }
  }

  /** A paused or killed larder does not tell: its last count stays. */
  async #count(larder: LarderProcess): Promise<void> {
    const signal = AbortSignal.timeout(COUNT_EVERY_MS);
    const answer = await fetch(`${larder.url}/metrics`, { signal }).catch(() => undefined);
    const text = await answer?.text().catch(() => undefined);
    if (text === undefined || !answer?.ok) return;
    this.#evicted.set(larder, new Scrape(text).value("larder_evicted_entries_total"));
  }

  async start(replica: Replica): Promise<void> {
    replica.larder = await startLarder({
      ...this.#flags,
      "server-addr": `127.0.0.1:${replica.port}`,
      "cache-advertise-url": replica.proxy.url,
    });
  }

  /** Ends it; resolves to its status. */
  async end(replica: Replica, signal: Deno.Signal): Promise<number> {
    const { larder } = replica;
    replica.larder = undefined;
    if (larder) await this.#count(larder);
    larder?.kill(signal);
    const status = await larder?.ended;
    for (const { level, msg } of larder?.lines ?? []) {
      if (level === "info" || level === "debug") continue;
      this.warnings.set(msg, (this.warnings.get(msg) ?? 0) + 1);
    }
    return status?.code ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const replica of this.replicas) await this.end(replica, "SIGKILL");
    await this.#opened[Symbol.asyncDispose]();
  }
}
