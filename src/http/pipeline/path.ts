/**
 * Never in a well-formed path: anything but visible ASCII, broken escapes and hidden separators.
 */
const MALFORMED_REGEXP = /[^!-~]|\\|%2f|%5c|%00|%(?![0-9a-f]{2})/i;

/**
 * The path of a URL, decoded, without its query; `undefined` if it is not well-formed. Dot segments
 * stay as they are: neither Deno nor larder resolves them.
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
