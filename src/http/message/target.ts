/**
 * Never in a well-formed path: anything but visible ASCII, broken escapes and hidden separators.
 */
const MALFORMED_REGEXP = /[^!-~]|\\|%2f|%5c|%00|%(?![0-9a-f]{2})/i;

/** Names of store paths may have a "?", which Nix does not escape: these paths end behind it. */
const NAMED_BY_STORE_PATH_REGEXP = /^(?:\/upload)?\/(?:log|build-trace-v2|realisations)\//;
const WHOLE_NAME_REGEXP = /\.(?:drv|doi)$/;

/**
 * The path of a URL, decoded, without its query; `undefined` if it is not well-formed. Dot segments
 * stay as they are: neither Deno nor larder resolves them.
 */
export function pathOf(url: string): string | undefined {
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  const query = url.indexOf("?", start);
  const path = query < 0 ? url.slice(start) : url.slice(start, endOfPath(url, { start, query }));
  if (MALFORMED_REGEXP.test(path)) return undefined;
  if (!path.includes("%")) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The end of the path before the query, or of a name that has the first "?" itself. */
function endOfPath(
  url: string,
  { start, query }: { readonly start: number; readonly query: number },
): number {
  const path = url.slice(start, query);
  if (!NAMED_BY_STORE_PATH_REGEXP.test(path) || WHOLE_NAME_REGEXP.test(path)) return query;
  return WHOLE_NAME_REGEXP.test(url) ? url.length : query;
}

/** The query of `ClientRequest.url`, with its "?"; empty if there is none. */
export function queryIn(url: string): string {
  const start = url.indexOf("?");
  return start < 0 ? "" : url.slice(start);
}

/** A name that an answer may repeat, though it is untrusted. */
const PLAIN_NAME_REGEXP = /^[\w-]{1,40}$/;

/** What is wrong with the parameters of a query: each must be one of `known`, and there once. */
export function queryFault(url: string, known: readonly string[]): string | undefined {
  const query = queryIn(url);
  if (query === "") return undefined;
  const seen = new Set<string>();
  for (const name of new URLSearchParams(query).keys()) {
    if (!known.includes(name)) {
      const given = PLAIN_NAME_REGEXP.test(name) ? ` ${name}` : "";
      const expected = known.length === 0 ? "none" : known.join(", ");
      return `unknown parameter${given}: expected ${expected}`;
    }
    if (seen.has(name)) return `parameter ${name} more than once: expected it once`;
    seen.add(name);
  }
  return undefined;
}
