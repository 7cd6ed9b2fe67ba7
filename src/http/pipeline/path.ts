/** What no well-formed path of ours has: other than visible ASCII, broken or hidden characters. */
const MALFORMED_REGEXP = /[^!-~]|\\|%2f|%5c|%00|%(?![0-9a-f]{2})/i;

/**
 * The path of a request's URL, decoded, without its query. `undefined` when it is not
 * well-formed. Deno hands the path on as it came, dots and all; it is never resolved here.
 */
export function pathOf(url: string): string | undefined {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  const query = url.indexOf("?", start);
  const path = query < 0 ? url.slice(start) : url.slice(start, query);
  if (MALFORMED_REGEXP.test(path)) return undefined;
  if (!path.includes("%")) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
