import { HIDDEN, type Kind } from "./option.ts";

/** An upstream binary cache. */
export interface UpstreamUrl {
  /** Absolute and normalised, without final slash and query; may hold credentials. */
  readonly url: string;
  /** Overrides the upstream's own priority; lower wins. */
  readonly priority?: number;
}

const EXPECTED = "an http or https URL such as https://cache.example.org or " +
  "https://cache.example.org?priority=10";

/** An http or https URL. It has no fragment, which would never reach a server. */
export const HTTP_URL_REGEXP = /^https?:\/\/[^\s#]+$/i;

const PRIORITY_QUERY_REGEXP = /^\?priority=([1-9]\d{0,9})$/;
const PRIORITY_MAX = 2 ** 31 - 1;

/** An http or https URL with at most the query `priority=N`. */
export const upstreamUrl: Kind<UpstreamUrl> = {
  placeholder: "URL",

  parse(given) {
    const parsed = URL.parse(given);
    if (parsed === null || !HTTP_URL_REGEXP.test(given)) throw new Error(EXPECTED);
    if (given.includes(`//${HIDDEN}@`)) {
      throw new Error(`the user and password themselves where ${HIDDEN} stands`);
    }
    if (!isEncoded(parsed.username) || !isEncoded(parsed.password)) {
      throw new Error("a user and password that are percent-encoded UTF-8, with %25 for a %");
    }
    const { protocol, username, password, host, pathname, search } = parsed;
    const credentials = password === "" ? username : `${username}:${password}`;
    const authority = credentials === "" ? host : `${credentials}@${host}`;
    const url = `${protocol}//${authority}${pathname.replace(/\/+$/, "")}`;
    return search === "" ? { url } : { url, priority: priorityOf(search) };
  },

  print({ url, priority }) {
    return priority === undefined ? url : `${url}?priority=${priority}`;
  },

  redact: hideCredentials,
};

/**
 * The URL, malformed or not, with `(hidden)` for user and password, and for all query values but
 * `priority`.
 */
export function hideCredentials(given: string): string {
  const text = given.replace(/([?&](?!priority=)[^=&#]*=)[^&#]+/g, `$1${HIDDEN}`);
  const isUrl = HTTP_URL_REGEXP.test(text) && URL.canParse(text);
  // Of a malformed URL everything is hidden: a raw slash in a password ends the host for the
  // parser.
  return isUrl
    ? text.replace(/^(https?:\/\/)[^/?]*@/i, `$1${HIDDEN}@`)
    : text.replace(/^([a-z]+:\/\/)?.*@/is, `$1${HIDDEN}@`);
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function priorityOf(query: string): number {
  const priority = Number(PRIORITY_QUERY_REGEXP.exec(query)?.[1]);
  // NaN, for another query, is not below the limit either.
  if (!(priority <= PRIORITY_MAX)) {
    throw new Error("a URL with no other query than priority=N, a whole number from 1");
  }
  return priority;
}

/** An http or https URL of a receiver, without credentials, query and final slash. */
export const httpUrl: Kind<string> = {
  placeholder: "URL",
  parse(given) {
    const url = URL.parse(given);
    const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === "" &&
      url.password === "" && url.search === "" && url.hash === "";
    if (!isPlain) throw new Error("an http or https URL without credentials and query");
    return url.href.replace(/\/+$/, "");
  },
  print: (value) => value,
  redact: hideCredentials,
};
