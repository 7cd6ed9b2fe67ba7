// @ts-types="./pg.d.ts"
import pg, { type Client, type ClientConfig, type PoolConfig } from "pg";

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
export function configOf(url: string): PoolConfig {
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
export async function connect(config: ClientConfig): Promise<Client> {
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
export function plainConfig(config: PoolConfig, error: unknown): PoolConfig | undefined {
  if (!(error instanceof Error) || error.message !== NO_TLS) return undefined;
  const url = new URL(config.connectionString ?? "");
  if (url.searchParams.get("sslmode") !== MAY_BE_PLAIN) return undefined;
  url.searchParams.set("sslmode", "disable");
  return { ...config, connectionString: url.href };
}
