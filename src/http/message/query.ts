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
