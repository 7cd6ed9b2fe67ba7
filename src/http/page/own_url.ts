import type { RequestHeaders } from "../message/client_request.ts";

/** Placeholder for an unknown address of this cache. */
export const UNKNOWN_URL = "http://ADDRESS-OF-THIS-CACHE";

/** A name, an IPv4 or an IPv6 address, and a port. */
const HOST_REGEXP = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * The URL that the client used for this cache, without a slash at its end. A malformed host is
 * never repeated: the headers are untrusted.
 */
export function ownUrl(headers: RequestHeaders, usesTls: boolean): string {
  const host = headers.get("host");
  if (host === null || !HOST_REGEXP.test(host)) return UNKNOWN_URL;
  const isSecure = usesTls || headers.get("x-forwarded-proto") === "https";
  return `${isSecure ? "https" : "http"}://${host.toLowerCase()}`;
}
