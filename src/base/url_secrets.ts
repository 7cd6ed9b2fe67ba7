const URL_REGEXP = /\b([a-z][a-z0-9+.-]*:\/\/)([^\s"'<>]+)/gi;

/** Punctuation behind a URL that belongs to the sentence around it. */
const SENTENCE = "),.:;";

/**
 * `text` for the log, without user, password and query of its URLs. Queries hold tokens and the
 * signatures of pre-signed URLs.
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

/** The text in front of the first separator, and behind it, if there is one. */
function split(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
