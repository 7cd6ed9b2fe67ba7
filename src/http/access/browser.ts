import type { RequestHeaders } from "../../base/request_headers.ts";
import { lowerAscii } from "../message/field_words.ts";
import { DEFAULT_PORTS, parseHost } from "../message/host.ts";

/** Headers that browsers set on every change, and that no page can set or remove. */
const CHANGE_SIGNS = ["origin", "sec-fetch-site"];

/**
 * Headers of a browser's reads. Over plain HTTP it sends no `Sec-Fetch-*`, and no `Origin` with a
 * GET.
 */
const READ_SIGNS = [
  ...[...CHANGE_SIGNS, "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user", "referer"],
  "upgrade-insecure-requests",
];

/** Every browser's User-Agent since 1998 begins so. */
const BROWSER_AGENT = "Mozilla/";

/** True when a browser sent this changing request. */
export function isChangeByBrowser({ headers }: BrowserSigns): boolean {
  return CHANGE_SIGNS.some((name) => headers.get(name) !== null);
}

/** True when a browser probably sent this reading request. */
export function isReadByBrowser({ headers }: BrowserSigns): boolean {
  if (READ_SIGNS.some((name) => headers.get(name) !== null)) return true;
  // Programs that send the header at all accept any language.
  if ((headers.get("accept-language") ?? "*") !== "*") return true;
  return headers.get("user-agent")?.startsWith(BROWSER_AGENT) ?? false;
}

/** True when a page of this cache sent it, or the user without any page. */
export function isOfSameOrigin({ headers }: BrowserSigns, usesTls: boolean): boolean {
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (site !== "same-origin" && site !== "none") return false;
  const origin = headers.get("origin");
  return origin === null || isOriginOf(origin, headers.get("host"), usesTls);
}

interface BrowserSigns {
  readonly headers: RequestHeaders;
}

/**
 * True when the origin is this server. Behind a proxy both schemes count, as the proxy may speak
 * TLS.
 */
function isOriginOf(origin: string, host: string | null, usesTls: boolean): boolean {
  const [, scheme, place] = /^(https?):\/\/(.+)$/.exec(lowerAscii(origin)) ?? [];
  if (scheme !== "https" && (scheme !== "http" || usesTls)) return false;
  const one = parseHost(place ?? "");
  const other = parseHost(host ?? "");
  if (one === undefined || other === undefined) return false;
  const defaultPort = DEFAULT_PORTS[scheme];
  return one.name === other.name && (one.port ?? defaultPort) === (other.port ?? defaultPort);
}
