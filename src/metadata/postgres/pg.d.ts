// The part of `pg` that larder uses. Its types on npm bring all of Node's along, which differ from
// Deno's.
import type { ConnectionOptions } from "node:tls";

export interface ClientConfig {
  readonly connectionString?: string;
  readonly ssl?: boolean | ConnectionOptions;
  readonly application_name?: string;
  readonly connectionTimeoutMillis?: number;
  readonly query_timeout?: number;
  readonly keepAlive?: boolean;
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

export interface PoolConfig extends ClientConfig {
  readonly max?: number;
}

export interface Query {
  /** Prepared under this name, once a connection. */
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly query_timeout?: number;
}

export interface Result {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export declare class Client {
  constructor(config: ClientConfig);
  connect(): Promise<void>;
  query(query: Query | string): Promise<Result>;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "end", listener: () => void): this;
  on(event: "notification", listener: (notice: { readonly payload?: string }) => void): this;
  end(): Promise<void>;
}

export declare class Pool {
  constructor(config: PoolConfig);
  query(query: Query): Promise<Result>;
  on(event: "error", listener: (error: Error) => void): this;
  end(): Promise<void>;
}

export declare class DatabaseError extends Error {
  /** The SQLSTATE. */
  readonly code?: string;
  readonly detail?: string;
}

declare const pg: {
  readonly Client: typeof Client;
  readonly Pool: typeof Pool;
  readonly DatabaseError: typeof DatabaseError;
  readonly types: {
    getTypeParser(oid: number, format?: string): (text: string) => unknown;
  };
};
export default pg;
