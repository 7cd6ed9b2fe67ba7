import { lruOf } from "../base/lru.ts";
import type { MemberId } from "../base/member_id.ts";
import type { StorageId } from "../base/storage_id.ts";
import type { Settings } from "../config/options.ts";
import { type LeaseMember, LeaseMetrics, Leases, type MemberRows } from "../locks/leases.ts";
import { MemberLeases, type WorkLeases } from "../locks/work_leases.ts";
import type { SpaceLedger } from "../metadata/space_keeper.ts";
import type { StorageIdKeeper } from "../metadata/metadata_store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Metrics, operationMeter } from "../telemetry/metrics.ts";
import { NO_TRACER, type Tracer } from "../telemetry/tracer.ts";
import { ownCertificates } from "./upstream_settings.ts";
import { openOwnLocks, openSharedLocks } from "./back_ends/shared_locks.ts";

const MEMBERS_MAX = 1_000;

/** A dead member leaves the ledger after 30 seconds at least. */
const LIVES_MS = 5_000;

export interface OpenLeasesDeps {
  /** This member. */
  readonly member: MemberId;
  readonly metadata: Pick<SpaceLedger, "members">;
  readonly ids: Pick<StorageIdKeeper, "storageId">;
  readonly metrics: Metrics;
  readonly tracer: Tracer | undefined;
  readonly log: Logger;
}

/** The leases of a member. Disposing of them ends the connection to the locks. */
export interface SharedLeases extends WorkLeases, AsyncDisposable {
  /** Call it once larder listens: without an advertised URL, others reach it there. */
  listening(url: string): void;
  /** For the row of this member: the others reach it there; `undefined`: nowhere. */
  ownUrl(): string | undefined;
}

/**
 * The leases of this member; `undefined` without Redis. A start waits at most two seconds for
 * Redis.
 */
export async function openLeases(
  settings: Settings,
  deps: OpenLeasesDeps,
): Promise<SharedLeases | undefined> {
  if (settings["cache.redis-addrs"].length === 0) return undefined;
  const { member, metadata, ids, metrics, tracer = NO_TRACER, log } = deps;
  const advertised = settings["cache.advertise-url"];
  let listeningUrl: string | undefined;
  let localAddress = (): string | undefined => undefined;
  const self = {
    member,
    get url() {
      return advertised ?? memberUrl(listeningUrl, localAddress());
    },
  };
  const keyPrefix = settings["cache.lock-redis-key-prefix"];
  const shared = await openSharedLocks({
    ...{ redis: await redisOf(settings), keyPrefix, holder: { member } },
    storageId: storageIdOf(ids),
    meter: operationMeter(metrics, "redis"),
  }, log);
  const { locks } = shared;
  localAddress = shared.localAddress;
  const leases = new Leases({
    locks,
    ownLocks: settings["cache.lock-allow-degraded-mode"] ? openOwnLocks({ member }) : undefined,
    self,
    members: memberRows(metadata, member),
    metrics: new LeaseMetrics(metrics),
    tracer,
    log,
  });
  const workLeases = new MemberLeases({
    leases,
    downloadTtlMs: settings["cache.lock-download-ttl"],
    lruTtlMs: settings["cache.lock-lru-ttl"],
    retryPolicy: {
      retriesMax: settings["cache.lock-retry-max-attempts"] - 1,
      initialDelayMs: settings["cache.lock-retry-initial-delay"],
      maxDelayMs: settings["cache.lock-retry-max-delay"],
      hasJitter: settings["cache.lock-retry-jitter"],
    },
  });
  return Object.assign(workLeases, {
    listening(url: string) {
      // Members send no PROXY header.
      if (!settings["server.proxy-protocol"]) listeningUrl = url;
    },
    ownUrl: () => self.url,
    [Symbol.asyncDispose]: () => locks[Symbol.asyncDispose](),
  });
}

/**
 * The URL by which others reach a member that advertises none. One that listens on all addresses
 * is reached at the one that it has in the network of Redis. `undefined` for a socket, and for
 * HTTPS: no certificate names the address.
 */
export function memberUrl(
  listeningUrl: string | undefined,
  localAddress: string | undefined,
): string | undefined {
  if (!listeningUrl?.startsWith("http://")) return undefined;
  const url = new URL(listeningUrl);
  if (url.hostname !== "localhost") return url.origin;
  const address = localAddress?.replace(/^::ffff:(?=[\d.]+$)/, "");
  // A zone belongs to one machine.
  if (address === undefined || address.includes("%")) return undefined;
  return `http://${address.includes(":") ? `[${address}]` : address}:${url.port || 80}`;
}

/** Reads the id until there is one: a new storage has none while its bucket is away. */
function storageIdOf(ids: OpenLeasesDeps["ids"]): () => Promise<StorageId | undefined> {
  let known: StorageId | undefined;
  return async () => {
    try {
      return known ??= await ids.storageId();
    } catch {
      return undefined;
    }
  };
}

/** The rows of members. Remembers each that others can reach for a while. */
export function memberRows(
  metadata: Pick<SpaceLedger, "members">,
  self: MemberId,
): MemberRows {
  const rows = lruOf<MemberId, LeaseMember>({ countMax: MEMBERS_MAX, ttlMs: LIVES_MS });
  return {
    async find(member) {
      const known = rows.get(member);
      if (known?.url !== undefined) return known;
      try {
        const all = await metadata.members(self);
        for (const { id, url } of all) rows.set(id, { member: id, url });
        return all.some(({ id }) => id === member) ? rows.get(member) : undefined;
      } catch {
        return known ?? "unknown";
      }
    },
  };
}

/** Addresses, credentials and TLS of Redis, from the settings. */
export async function redisOf(settings: Settings) {
  return {
    addresses: settings["cache.redis-addrs"],
    sentinelMaster: settings["cache.redis-sentinel-master"],
    username: settings["cache.redis-username"],
    password: settings["cache.redis-password"],
    db: settings["cache.redis-db"],
    tls: settings["cache.redis-use-tls"] ? await ownCertificates(settings) : undefined,
  };
}
