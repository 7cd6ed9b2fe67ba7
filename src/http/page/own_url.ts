import type { RequestHeaders } from "../message/client_request.ts";

/** Stands where nobody knows under which address the client sees us. */
export const UNKNOWN_URL = "http://ADDRESS-OF-THIS-CACHE";

/** A name, an IPv4 or an IPv6 address, and a port. */
const HOST_REGEXP = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * The URL under which a client has reached this cache, without a slash at its end. The headers
 * are the client's own words: what is no host is not repeated.
 */
export function ownUrl(headers: RequestHeaders, usesTls: boolean): string {
  const host = headers.get("host");
  if (host === null || !HOST_REGEXP.test(host)) return UNKNOWN_URL;
  const isSecure = usesTls || headers.get("x-forwarded-proto") === "https";
  return `${isSecure ? "https" : "http"}://${host.toLowerCase()}`;
}
