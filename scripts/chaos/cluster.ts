import type { FakeUpstream } from "../../tests/support/fake_upstream.ts";
import { FaultProxy } from "../../tests/support/fault_proxy.ts";
import { freePort } from "../../tests/support/free_port.ts";
import { type LarderProcess, startLarder } from "../../tests/support/larder_process.ts";
import { PostgresServer } from "../../tests/support/postgres.ts";
import { RedisServer } from "../../tests/support/redis_server.ts";
import { tempFolder } from "../../tests/support/temp_folder.ts";

const REPLICAS = 3;

/** One larder of several, which the others reach through a proxy that can fail. */
interface Replica {
  readonly port: number;
  readonly proxy: FaultProxy;
  larder: LarderProcess | undefined;
}

/** Larders on one folder, one database and one Redis. */
export class Cluster implements AsyncDisposable {
  readonly redis: RedisServer;
  /** `undefined` where it is not installed: then the database is an SQLite file. */
  readonly postgres: PostgresServer | undefined;
  readonly storage: string;
  readonly replicas: readonly Replica[];
  readonly #flags: Readonly<Record<string, string>>;
  /** False while locks or the database are away, and until every larder has found them again. */
  isShared = true;
  /** Log lines of level warn and above, by message. */
  readonly warnings = new Map<string, number>();
  readonly #opened: AsyncDisposable;

  private constructor(
    parts: Pick<Cluster, "redis" | "postgres" | "storage" | "replicas">,
    flags: Readonly<Record<string, string>>,
    opened: AsyncDisposable,
  ) {
    this.redis = parts.redis;
    this.postgres = parts.postgres;
    this.storage = parts.storage;
    this.replicas = parts.replicas;
    this.#flags = flags;
    this.#opened = opened;
  }

  static async start(upstream: FakeUpstream): Promise<Cluster> {
    await using opening = new AsyncDisposableStack();
    const storage = opening.use(tempFolder()).path;
    const redis = opening.use(await RedisServer.open());
    const postgres = PostgresServer.start();
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
      ...(postgres === undefined ? {} : { "cache-database-url": postgres.createDatabase() }),
    };
    const parts = { redis, postgres, storage, replicas };
    const cluster = new Cluster(parts, flags, opening.move());
    for (const replica of replicas) await cluster.start(replica);
    return cluster;
  }

  /** The words that name the stores to a command. */
  get places(): readonly string[] {
    return ["cache-storage-local", "cache-database-url"].flatMap((name) => {
      const value = this.#flags[name];
      return value === undefined ? [] : [`--${name}=${value}`];
    });
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
