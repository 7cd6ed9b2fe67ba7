import { duration } from "../kinds/duration.ts";
import { httpUrl } from "../kinds/upstream_url.ts";
import { listOf } from "../kinds/list.ts";
import { networkAddress } from "../kinds/addresses.ts";
import { boolean, integer, text } from "../kinds/plain.ts";
import type { OptionTable } from "../kinds/option.ts";

const REDIS_PORT = 6379;

/** Redis has 16 databases unless its administrator says otherwise. */
const DATABASE_MAX = 1_000_000;

const ATTEMPTS_MAX = 100;

/** Options of several larders that share one storage. */
export const MEMBER_OPTIONS = {
  "cache.advertise-url": {
    kind: httpUrl,
    shown: "where it listens, without HTTPS: at its address in the network of Redis",
    example: "http://larder-1.example:8501",
    help: "URL by which the other larders reach this one",
    details: "They read its downloads with their cache.get-token. With SQLite: of this machine.",
  },
  "cache.redis-addrs": {
    kind: listOf(networkAddress(REDIS_PORT)),
    default: [],
    shown: "none: one larder needs no locks",
    example: "redis.example:6379",
    help: "Redis for locks between larders; several of a cluster",
    details: "A lock only saves work: without Redis larders serve on, and may fetch a path twice.",
    also: [{ key: "cache.redis.addrs" }],
  },
  "cache.redis-sentinel-master": {
    kind: text,
    shown: "none",
    example: "mymaster",
    help: "Name of the master; cache.redis-addrs are then sentinels",
  },
  "cache.redis-username": {
    kind: text,
    shown: "none",
    example: "larder",
    help: "User name for Redis",
    also: [{ key: "cache.redis.username" }],
  },
  "cache.redis-password": {
    kind: text,
    secret: true,
    shown: "none",
    help: "Password for Redis",
    also: [{ key: "cache.redis.password" }],
  },
  "cache.redis-db": {
    kind: integer(0, DATABASE_MAX),
    default: 0,
    help: "Number of the database in Redis; a cluster has 0 alone",
    also: [{ key: "cache.redis.db" }],
  },
  "cache.redis-use-tls": {
    kind: boolean,
    default: false,
    help: "Connect to Redis, and to its sentinels, by TLS",
    also: [{ key: "cache.redis.use-tls" }],
  },
  "cache.lock-redis-key-prefix": {
    kind: text,
    default: "larder:lock:",
    help: "Text in front of every key in Redis",
    details: "Larders of one storage need the same. The keys of other storages differ anyway.",
    also: [{ key: "cache.lock.redis.key-prefix" }],
  },
  "cache.lock-download-ttl": {
    kind: duration,
    default: 5 * 60_000,
    help: "How long a dead larder's lock on a download may last",
    details: "The holder renews its lock, however long the download takes.",
    also: [{ key: "cache.lock.download-lock-ttl" }],
  },
  "cache.lock-lru-ttl": {
    kind: duration,
    default: 30 * 60_000,
    help: "How long a dead larder's lock on eviction may last",
    details: "The others free it sooner, once they know of the death: within a minute.",
    also: [{ key: "cache.lock.lru-lock-ttl" }],
  },
  "cache.lock-retry-max-attempts": {
    kind: integer(1, ATTEMPTS_MAX),
    default: 3,
    help: "Attempts to acquire a lock",
    also: [{ key: "cache.lock.retry.max-attempts" }],
  },
  "cache.lock-retry-initial-delay": {
    kind: duration,
    default: 100,
    help: "Pause before the second attempt; it doubles each time",
    also: [{ key: "cache.lock.retry.initial-delay" }],
  },
  "cache.lock-retry-max-delay": {
    kind: duration,
    default: 2_000,
    help: "Longest pause between two attempts",
    also: [{ key: "cache.lock.retry.max-delay" }],
  },
  "cache.lock-retry-jitter": {
    kind: boolean,
    default: true,
    help: "Vary the pauses at random",
    also: [{ key: "cache.lock.retry.jitter" }],
  },
  "cache.lock-allow-degraded-mode": {
    kind: boolean,
    default: false,
    help: "Use locks of this process alone while Redis is away",
    details: "Work goes on either way. With it, the log has no line that a lock is not acquired.",
    also: [{ key: "cache.lock.allow-degraded-mode" }],
  },
} as const satisfies OptionTable;
