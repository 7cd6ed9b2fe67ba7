import type { StorageId } from "../../base/storage_id.ts";
import { LocalLocks } from "../../locks/local/local_locks.ts";
import type { HolderFacts, Locks } from "../../locks/locks.ts";
import type { RedisSettings } from "../../locks/redis/redis_client.ts";
import type { OperationOf } from "../../telemetry/instruments/operation_labels.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { OperationMeter } from "../../telemetry/metrics.ts";

export interface SharedLocksOptions {
  readonly redis: RedisSettings;
  readonly keyPrefix: string;
  readonly storageId: () => Promise<StorageId | undefined>;
  /** This member. */
  readonly holder: HolderFacts;
  readonly meter: OperationMeter<OperationOf<"redis">>;
}

export interface SharedLocks {
  readonly locks: Locks;
  /** This machine's address in the connection to them; `undefined` while there is none. */
  readonly localAddress: () => string | undefined;
}

/** The locks that all members share. Loads the client of Redis, which costs memory. */
export async function openSharedLocks(
  { redis, ...facts }: SharedLocksOptions,
  log: Logger,
): Promise<SharedLocks> {
  const [{ connectRedis }, { RedisLocks }] = await Promise.all([
    import("../../locks/redis/redis_client.ts"),
    import("../../locks/redis/redis_locks.ts"),
  ]);
  const connection = await connectRedis(redis, log);
  const locks = new RedisLocks({ connection, ...facts, log });
  return { locks, localAddress: connection.localAddress };
}

/** The locks of this process alone. */
export function openOwnLocks(holder: HolderFacts): Locks {
  return new LocalLocks(holder);
}
