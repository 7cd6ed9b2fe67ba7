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
import { tempFolder } from "../../tests/support/temp_folder.ts";
import type { World } from "./world.ts";

/** One of the larders. The others reach it through a proxy that can fail. */
export interface Member {
  readonly port: number;
  readonly proxy: FaultProxy;
  /** `undefined` while it starts. */
  larder: LarderProcess | undefined;
}

/** What several larders share; one larder alone has none of them. */
export interface SharedNeighbours {
  readonly redis?: RedisServer | undefined;
  /** `undefined` where it is not installed: then the rows are in a file of SQLite. */
  readonly postgres?: PostgresServer | undefined;
  /** In front of the S3 server; `undefined` where none is built: NAR files are in a folder. */
  readonly s3?: S3FaultProxy | undefined;
}

/** Larders on one storage, which can be killed and started again. */
export class Cluster implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly neighbours: SharedNeighbours;
  readonly #flags: LarderFlags;
  readonly #opened: AsyncDisposable;

  private constructor(
    { members, neighbours }: Pick<Cluster, "members" | "neighbours">,
    flags: LarderFlags,
    opened: AsyncDisposable,
  ) {
    this.members = members;
    this.neighbours = neighbours;
    this.#flags = flags;
    this.#opened = opened;
  }

  static async start(
    { upstreams }: World,
    { count, limitBytes }: { readonly count: number; readonly limitBytes: number },
  ): Promise<Cluster> {
    await using opening = new AsyncDisposableStack();
    const storage = opening.use(tempFolder()).path;
    const members = Array.from({ length: count }, (): Member => {
      const port = freePort();
      const proxy = opening.use(new FaultProxy({ targetPort: port }));
      return { port, proxy, larder: undefined };
    });
    const [neighbours, shared] = count === 1 ? [{}, {}] : await neighboursIn(opening);
    const flags = {
      "cache-storage-local": storage,
      "cache-upstream-url": upstreams.map(({ url }) => url),
      "cache-upstream-public-key": upstreams.map(({ publicKey }) => publicKey),
      "cache-max-size": String(limitBytes),
      "cache-allow-delete-verb": "true",
      "cache-negative-ttl": "1s",
      "cache-upstream-dialer-timeout": "1s",
      "cache-upstream-response-header-timeout": "1s",
      "cache-upstream-body-idle-timeout": "2s",
      ...shared,
    };
    const cluster = new Cluster({ members, neighbours }, flags, opening.move());
    for (const member of members) await cluster.start(member);
    return cluster;
  }

  get larders(): readonly LarderProcess[] {
    return this.members.flatMap(({ larder }) => larder ?? []);
  }

  get storage(): string {
    return String(this.#flags["cache-storage-local"]);
  }

  /** The words that name the stores to a command. */
  get places(): readonly string[] {
    return Object.entries(this.#flags)
      .filter(([name]) => /^cache-(storage|database)-/.test(name))
      .map(([name, value]) => `--${name}=${value}`);
  }

  async start(member: Member): Promise<void> {
    member.larder = await startLarder({
      ...this.#flags,
      "server-addr": `127.0.0.1:${member.port}`,
      ...(this.neighbours.redis && { "cache-advertise-url": member.proxy.url }),
    });
  }

  /** Ends it; resolves to its status. */
  async end(member: Member, signal: Deno.Signal): Promise<number> {
    const { larder } = member;
    member.larder = undefined;
    larder?.kill(signal);
    return (await larder?.ended)?.code ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of this.members) await this.end(member, "SIGKILL");
    await this.#opened[Symbol.asyncDispose]();
  }
}

/** Starts them, with the flags that lead to them. */
async function neighboursIn(
  opening: AsyncDisposableStack,
): Promise<readonly [SharedNeighbours, LarderFlags]> {
  const redis = opening.use(await RedisServer.open());
  const postgres = PostgresServer.start();
  const server = S3_UNAVAILABLE === "" ? await S3Server.start() : undefined;
  const s3 = server && opening.use(new S3FaultProxy(server.port));
  const flags = {
    "cache-redis-addrs": redis.address,
    ...(postgres === undefined ? {} : { "cache-database-url": postgres.createDatabase() }),
    ...(server === undefined || s3 === undefined ? {} : s3Flags(server.bucket(s3.port))),
  };
  return [{ redis, postgres, s3 }, flags];
}
