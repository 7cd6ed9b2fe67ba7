/**
 * The absolute URL of `location`, a relative reference below `baseUrl` with its query.
 * `undefined` when it is no reference, or leads to another host or out of the base's path.
 */
export function resolveLocation(baseUrl: string, location: string): URL | undefined {
  const base = new URL(baseUrl.endsWith("/") ? baseUrl : baseUrl + "/");
  const url = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (url === undefined || url.origin !== base.origin) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "") return undefined;
  if (!url.pathname.startsWith(base.pathname)) return undefined;
  // Some servers decode before they resolve dots: refuse paths that could climb there.
  return ENCODED_CLIMB_REGEXP.test(url.pathname) ? undefined : url;
}

const ENCODED_CLIMB_REGEXP = /%2f|%5c|%00|(^|\/)(\.|%2e){2}(\/|$)/i;

/** True if `resolveLocation` accepts it; nearly all locations are plain paths, and cheap. */
export function isBelow(baseUrl: string, location: string): boolean {
  return PLAIN_LOCATION_REGEXP.test(location) || resolveLocation(baseUrl, location) !== undefined;
}

const PLAIN_LOCATION_REGEXP = /^nar\/[A-Za-z0-9][A-Za-z0-9._-]*$/;
