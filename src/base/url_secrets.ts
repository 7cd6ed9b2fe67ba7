const URL_REGEXP = /\b([a-z][a-z0-9+.-]*:\/\/)([^\s"'<>]+)/gi;

/** Behind a URL these belong to the sentence around it. */
const SENTENCE = "),.:;";

/**
 * A text for the log, without what may be secret in its URLs: user and password, and the query,
 * which is where signatures of pre-signed URLs and tokens stand.
 */
export function withoutUrlSecrets(text: string): string {
  return text.replace(URL_REGEXP, (_, scheme: string, rest: string) => {
    let end = rest.length;
    while (SENTENCE.includes(rest[end - 1] ?? "-")) end--;
    const [shown = "", query] = split(rest.slice(0, end), "?");
    const [authority = "", path] = split(shown, "/");
    const host = authority.slice(authority.lastIndexOf("@") + 1);
    return scheme + host + (path === undefined ? "" : `/${path}`) +
      (query === undefined ? "" : "?(hidden)") + rest.slice(end);
  });
}

/** What is in front of the first separator, and what is behind it, where it is there. */
function split(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
