/** Seconds. If the cache is off, Nix soon goes on to its next substituter. */
const CONNECT_TIMEOUT_S = 3;

/** Seconds. By itself, Nix remembers a 404 for an hour, also one that an outage caused. */
const NEGATIVE_TTL_S = 60;

/**
 * The lines for a client's `nix.conf` that let it use a cache. They extend its settings.
 * `publicKeys`: those that sign the narinfos of the cache.
 */
export function clientSettings(url: string, publicKeys: readonly string[]): readonly string[] {
  return [
    `extra-substituters = ${url}`,
    ...publicKeys.length === 0 ? [] : [`extra-trusted-public-keys = ${publicKeys.join(" ")}`],
    `narinfo-cache-negative-ttl = ${NEGATIVE_TTL_S}`,
    `connect-timeout = ${CONNECT_TIMEOUT_S}`,
  ];
}
