import type { RequestHeaders } from "../message/client_request.ts";
import { lowerAscii } from "../message/field_words.ts";
import { parseHost } from "../message/host.ts";

/** A page cannot set these, nor leave them out where it changes something. */
const CHANGE_SIGNS = ["origin", "sec-fetch-site"];

/** Over plain HTTP browsers send no `Sec-Fetch-*`, and no `Origin` with a GET. */
const READ_SIGNS = [
  ...[...CHANGE_SIGNS, "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user", "referer"],
  "upgrade-insecure-requests",
];

/** Of every browser since 1998. */
const BROWSER_AGENT = "Mozilla/";

/** True when a request that changes something comes from a browser. */
export function isChangeByBrowser({ headers }: Asked): boolean {
  return CHANGE_SIGNS.some((name) => headers.get(name) !== null);
}

/** True when a request that reads something comes from a browser, as far as it can be told. */
export function isReadByBrowser({ headers }: Asked): boolean {
  if (READ_SIGNS.some((name) => headers.get(name) !== null)) return true;
  // Programs that send it at all take any language.
  if ((headers.get("accept-language") ?? "*") !== "*") return true;
  return headers.get("user-agent")?.startsWith(BROWSER_AGENT) ?? false;
}

/** Whether a page of this cache's own sent it, or the user did without any page. */
export function isOfSameOrigin({ headers }: Asked, usesTls: boolean): boolean {
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (site !== "same-origin" && site !== "none") return false;
  const origin = headers.get("origin");
  return origin === null || isOriginOf(origin, headers.get("host"), usesTls);
}

interface Asked {
  readonly headers: RequestHeaders;
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const;

/** Where we speak no TLS ourselves a proxy may: then both schemes are ours. */
function isOriginOf(origin: string, host: string | null, usesTls: boolean): boolean {
  const [, scheme, place] = /^(https?):\/\/(.+)$/.exec(lowerAscii(origin)) ?? [];
  if (scheme !== "https" && (scheme !== "http" || usesTls)) return false;
  const one = parseHost(place ?? "");
  const other = parseHost(host ?? "");
  if (one === undefined || other === undefined) return false;
  const defaultPort = DEFAULT_PORTS[scheme];
  return one.name === other.name && (one.port ?? defaultPort) === (other.port ?? defaultPort);
}
