import { Cluster, Redis } from "ioredis";
import { messageOf } from "../../base/failure.ts";
import type { NetworkAddress } from "../../base/network_address.ts";
import { clock } from "../../runtime/current.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** How long Redis may take to answer a command. A client waits for two at most. */
const ANSWER_MAX_MS = 1_000;

/** How long a connection, or a look at the slots of a cluster, may take. */
const CONNECTION_MAX_MS = 1_000;

/** larder replaces a connection that is silent for longer: the other machine may be gone. */
const SILENCE_MAX_MS = 5_000;

/** Longest pause between two attempts to connect. */
const RECONNECT_MAX_MS = 2_000;

/** How long a start waits for Redis. */
const READY_MAX_MS = 2_000;

export interface RedisSettings {
  /** One server, several of a cluster, or sentinels. */
  readonly addresses: readonly NetworkAddress[];
  /** Set for sentinels: the name of the master. */
  readonly sentinelMaster?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db: number;
  /** The PEM certificates to trust; `undefined`: no TLS. An empty list: those of Deno. */
  readonly tls?: readonly string[] | undefined;
}

export type RedisClient = Redis | Cluster;

export interface RedisConnection {
  readonly client: RedisClient;
  /** Why there is no connection. A command then says no more than that there is none. */
  readonly failure: () => unknown;
  /** Forgets the failure; call it when a command was answered. A cluster does not say so. */
  readonly answered: () => void;
  /** This machine's address in the connection; `undefined` while there is none. */
  readonly localAddress: () => string | undefined;
}

/**
 * Connects in the background, for as long as it takes. Resolves when Redis has answered, or after
 * two seconds. Commands fail at once without a connection.
 */
export async function connectRedis(settings: RedisSettings, log: Logger): Promise<RedisConnection> {
  const client = clientOf(settings);
  let failure: unknown;
  const ready = new Promise<void>((resolve) => client.once("ready", () => resolve()));
  client.on("ready", () => failure = undefined);
  // Without a listener an error ends the process.
  client.on("error", (error) => {
    failure = causeOf(error);
    log.debug("Redis connection failed", { error: messageOf(failure) });
  });
  await clock.within(ready, READY_MAX_MS);
  return {
    client,
    failure: () => failure,
    answered: () => failure = undefined,
    localAddress: () => localAddressOf(client),
  };
}

/**
 * The answer to a command. Throws after a second without one. A standstill of this thread counts
 * little, which is why this is not left to the client.
 */
export async function redisAnswer<Answer>(command: Promise<Answer>): Promise<Answer> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  using _limit = clock.countdown(ANSWER_MAX_MS, () => reject(new Error("Command timed out")));
  return await Promise.race([command, late]);
}

function localAddressOf(client: RedisClient): string | undefined {
  const connected = client instanceof Cluster ? client.nodes("all") : [client];
  return connected.map(({ stream }) => (stream as { localAddress?: string } | null)?.localAddress)
    .find((address) => address !== undefined);
}

/** Of a cluster the error of a node says why. */
function causeOf(error: Error & { readonly lastNodeError?: Error }): Error {
  return error.lastNodeError ?? error;
}

function clientOf({ addresses, sentinelMaster, ...login }: RedisSettings): RedisClient {
  const options = optionsOf(login);
  const [first, ...more] = addresses;
  const nodes = [...addresses];
  if (sentinelMaster !== undefined) {
    const { tls } = options;
    const byTls = tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true };
    return new Redis({ ...options, sentinels: nodes, name: sentinelMaster, ...byTls });
  }
  if (more.length === 0) return new Redis({ ...options, ...first });
  return new Cluster(nodes, {
    redisOptions: options,
    enableOfflineQueue: false,
    clusterRetryStrategy: retryAfterMs,
    slotsRefreshTimeout: CONNECTION_MAX_MS,
  });
}

function optionsOf(
  { username, password, db, tls }: Omit<RedisSettings, "addresses" | "sentinelMaster">,
) {
  return {
    db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls: tls.length === 0 ? {} : { ca: [...tls] } }),
    connectionName: "larder",
    connectTimeout: CONNECTION_MAX_MS,
    socketTimeout: SILENCE_MAX_MS,
    // A lock that comes late is of no use: a command never waits for a connection.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryAfterMs,
  };
}

function retryAfterMs(attempt: number): number {
  return Math.min(RECONNECT_MAX_MS, 100 * 2 ** Math.min(attempt, 5));
}
