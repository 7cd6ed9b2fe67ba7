import { hideCredentials } from "./kinds/upstream_url.ts";
import type { Settings } from "./options.ts";

/** A condition between options, checked once each of them is valid. */
export interface Rule<S> {
  /** The options concerned; a problem names the first. */
  readonly about: readonly [keyof S & string, ...(keyof S & string)[]];
  /** The problem, such as `got …, expected …`; `undefined` if the condition holds. */
  problem(settings: S): string | undefined;
}

/** Every condition between larder's options. */
export const RULES: readonly Rule<Settings>[] = [
  {
    about: ["server.tls-cert", "server.tls-key"],
    problem(settings) {
      const hasKey = settings["server.tls-key"] !== undefined;
      if (hasKey === (settings["server.tls-cert"] !== undefined)) return undefined;
      const [given, missing] = hasKey ? ["key", "certificate"] : ["certificate", "key"];
      return `got a ${given} without a ${missing}, expected both or none`;
    },
  },
  {
    about: ["server.tls-cert", "server.addr"],
    problem(settings) {
      const isUnix = settings["server.addr"].kind === "unix";
      if (!isUnix || settings["server.tls-cert"] === undefined) return undefined;
      return "got a certificate for a Unix socket, expected one for HOST:PORT only";
    },
  },
  {
    about: ["cache.upstream-url"],
    problem(settings) {
      return firstTwice(settings["cache.upstream-url"].map(({ url }) => hideCredentials(url)));
    },
  },
  {
    about: ["cache.upstream-public-key"],
    problem(settings) {
      return firstTwice(settings["cache.upstream-public-key"].map(({ text }) => text));
    },
  },
  {
    about: [
      "cache.upstream-public-key",
      "cache.require-upstream-signature",
      "cache.upstream-url",
    ],
    problem(settings) {
      const isNeeded = settings["cache.require-upstream-signature"] &&
        settings["cache.upstream-url"].length > 0;
      if (!isNeeded || settings["cache.upstream-public-key"].length > 0) return undefined;
      return "got no key, expected one while cache.require-upstream-signature is true";
    },
  },
  {
    about: ["cache.storage-s3-access-key-id", "cache.storage-s3-secret-access-key"],
    problem(settings) {
      if (settings["cache.storage-s3-bucket"] === undefined) return undefined;
      const hasSecret = settings["cache.storage-s3-secret-access-key"] !== undefined;
      if (hasSecret === (settings["cache.storage-s3-access-key-id"] !== undefined)) {
        return undefined;
      }
      const [given, missing] = hasSecret ? ["secret", "key"] : ["key", "secret"];
      return `got a ${given} without its ${missing}, expected both or none`;
    },
  },
  {
    about: ["cache.redis-db", "cache.redis-addrs"],
    problem(settings) {
      const isCluster = settings["cache.redis-addrs"].length > 1 &&
        settings["cache.redis-sentinel-master"] === undefined;
      if (!isCluster || settings["cache.redis-db"] === 0) return undefined;
      return `got ${settings["cache.redis-db"]}, expected 0 for a cluster of several addresses`;
    },
  },
  {
    about: ["cache.advertise-url", "cache.database-url"],
    problem(settings) {
      const url = settings["cache.advertise-url"];
      if (url === undefined || settings["cache.database-url"].kind !== "sqlite") return undefined;
      if (isHere(new URL(url).hostname, settings)) return undefined;
      return `got ${url} with an SQLite file, which machines cannot share, expected ` +
        "postgres:// in cache.database-url, or an address of this machine";
    },
  },
  {
    about: ["cache.storage-s3-redirect", "cache.storage-s3-bucket"],
    problem(settings) {
      const hasBucket = settings["cache.storage-s3-bucket"] !== undefined;
      if (hasBucket || !settings["cache.storage-s3-redirect"]) return undefined;
      return "got true without cache.storage-s3-bucket, expected both or none";
    },
  },
  {
    about: ["cache.max-size"],
    problem(settings) {
      if (settings["cache.max-size"] !== 0) return undefined;
      return "got 0, expected a size above it, or unlimited";
    },
  },
];

/** Options without effect if there is no Redis. */
const ABOUT_REDIS = [
  "cache.advertise-url",
  "cache.redis-sentinel-master",
  "cache.redis-username",
  "cache.redis-password",
  "cache.redis-db",
  "cache.redis-use-tls",
  "cache.lock-redis-key-prefix",
  "cache.lock-download-ttl",
  "cache.lock-lru-ttl",
  "cache.lock-retry-max-attempts",
  "cache.lock-retry-initial-delay",
  "cache.lock-retry-max-delay",
  "cache.lock-retry-jitter",
  "cache.lock-allow-degraded-mode",
] as const;

/** Options without effect if there is no upstream. */
const ABOUT_UPSTREAMS = [
  "cache.upstream-public-key",
  "cache.require-upstream-signature",
  "cache.upstream-dialer-timeout",
  "cache.upstream-response-header-timeout",
  "cache.upstream-body-idle-timeout",
  "cache.negative-ttl",
  "cache.narinfo-refresh",
  "cache.prefetch",
  "netrc-file",
] as const;

/** Options without effect if the NAR files are in a directory. */
const ABOUT_S3 = [
  "cache.storage-s3-endpoint",
  "cache.storage-s3-region",
  "cache.storage-s3-access-key-id",
  "cache.storage-s3-secret-access-key",
  "cache.storage-s3-force-path-style",
] as const;

/** Options without effect beside the others: a warning if one was given. */
export const NO_EFFECT: readonly Rule<Settings>[] = [
  ...(["server.socket-mode", "server.socket-group"] as const).map((key) =>
    idle(key, "without a Unix socket in server.addr", (settings) => {
      return settings["server.addr"].kind !== "unix";
    })
  ),
  idle("server.connections-per-address", "with a Unix socket", (settings) => {
    return settings["server.addr"].kind === "unix";
  }),
  {
    about: ["server.accel-redirect"],
    problem(settings) {
      if (settings["server.trusted-proxies"].length === 0) {
        return "has no effect without nginx in server.trusted-proxies";
      }
      const hasFiles = settings["cache.storage-s3-bucket"] === undefined;
      return hasFiles ? undefined : "has no effect with cache.storage-s3-bucket";
    },
  },
  idle("cache.lru-schedule", "without a limit in cache.max-size", (settings) => {
    const order = settings["cache.max-size"];
    const hasBucket = settings["cache.storage-s3-bucket"] !== undefined;
    return order === "unlimited" || (order === "auto" && hasBucket);
  }),
  idle("cache.lru-schedule-timezone", "without hours in cache.lru-schedule", (settings) => {
    return settings["cache.lru-schedule"]?.kind !== "cron";
  }),
  idle("cache.prefetch-nar-max-size", "while cache.prefetch is false", (settings) => {
    return !settings["cache.prefetch"];
  }),
  idle("cache.recompress-level", "while cache.recompress is off", (settings) => {
    return settings["cache.recompress"] === "off";
  }),
  idle("cache.secret-key-path", "while cache.sign-narinfo is false", (settings) => {
    return !settings["cache.sign-narinfo"];
  }),
  idle("cache.trusted-upload-key", "without cache.allow-put-verb", (settings) => {
    return !settings["cache.allow-put-verb"];
  }),
  {
    about: ["cache.require-trusted-signature"],
    problem(settings) {
      if (!settings["cache.allow-put-verb"]) return "has no effect without cache.allow-put-verb";
      const refusesAll = settings["cache.require-trusted-signature"] &&
        settings["cache.trusted-upload-key"].length === 0;
      return refusesAll ? "refuses every upload without cache.trusted-upload-key" : undefined;
    },
  },
  idle("cache.database-password", "without postgres: in cache.database-url", (settings) => {
    return settings["cache.database-url"].kind !== "postgres";
  }),
  ...ABOUT_S3.map((key) =>
    idle(key, "without cache.storage-s3-bucket", (settings) => {
      return settings["cache.storage-s3-bucket"] === undefined;
    })
  ),
  idle("otel.grpc-url", "without otel.enabled", (settings) => !settings["otel.enabled"]),
  idle("otel.propagate-to-upstreams", "without otel.enabled", (settings) => {
    return !settings["otel.enabled"];
  }),
  // It also adds metrics.
  idle("analytics.reporting-enabled", "without analytics.reporting-url or metrics", (settings) => {
    const hasMetrics = settings["prometheus.enabled"] || settings["otel.enabled"];
    return settings["analytics.reporting-url"] === undefined && !hasMetrics;
  }),
  idle("analytics.reporting-url", "without analytics.reporting-enabled", (settings) => {
    return !settings["analytics.reporting-enabled"];
  }),
  ...ABOUT_REDIS.map((key) =>
    idle(key, "without cache.redis-addrs", (settings) => {
      return settings["cache.redis-addrs"].length === 0;
    })
  ),
  ...ABOUT_UPSTREAMS.map((key) =>
    idle(key, "without cache.upstream-url", (settings) => {
      return settings["cache.upstream-url"].length === 0;
    })
  ),
];

/** True for a host of a URL that is known to be this machine. */
function isHere(host: string, settings: Settings): boolean {
  const address = settings["server.addr"];
  const names = [settings["cache.hostname"], ...settings["server.allowed-hosts"], "localhost"];
  if (address.kind === "tcp" && address.hostname !== undefined) names.push(address.hostname);
  const plain = host.replace(/^\[(.*)\]$/, "$1");
  return names.includes(plain) || plain === "::1" || plain.startsWith("127.");
}

function idle(
  key: keyof Settings,
  circumstance: string,
  isIdle: (settings: Settings) => boolean,
): Rule<Settings> {
  return {
    about: [key],
    problem: (settings) => isIdle(settings) ? `has no effect ${circumstance}` : undefined,
  };
}

function firstTwice(items: readonly string[]): string | undefined {
  const twice = items.find((item, at) => items.indexOf(item) < at);
  return twice && `got ${JSON.stringify(twice)} twice, expected it once`;
}
