import type { StorageId } from "../../src/base/storage_id.ts";
import type { HolderFacts } from "../../src/locks/locks.ts";
import { connectRedis } from "../../src/locks/redis/redis_client.ts";
import { RedisLocks } from "../../src/locks/redis/redis_locks.ts";
import { createLogger, type Logger } from "../../src/telemetry/logger.ts";

const SILENT = createLogger("error", { write() {} });

export interface RedisLocksOptions {
  readonly keyPrefix?: string;
  readonly storageId?: StorageId;
  readonly holder?: HolderFacts;
  readonly log?: Logger;
  readonly password?: string;
}

/** Locks in the Redis at `address`, a host and a port. */
export async function openRedisLocks(
  address: string,
  {
    keyPrefix = "",
    holder = { member: "host.2.other" },
    storageId,
    log = SILENT,
    password,
  }: RedisLocksOptions = {},
): Promise<RedisLocks> {
  const { hostname: host, port } = new URL(`redis://${address}`);
  const addresses = [{ host, port: Number(port) }];
  const connection = await connectRedis({ addresses, db: 0, password }, log);
  return new RedisLocks({
    ...{ connection, keyPrefix, holder, log },
    storageId: () => Promise.resolve(storageId),
  });
}
