import { Failure, messageOf } from "../../base/failure.ts";
import type { HttpClient, Net } from "../../runtime/net.ts";
import type { CaCertificates } from "./http_settings.ts";

/** One pool of connections, for all upstreams. Throws when a certificate cannot be used. */
export function createUpstreamClient(net: Net, caCertificates: CaCertificates): HttpClient {
  try {
    return net.client(caCertificates);
  } catch (error) {
    throw new Failure("broken", `Cannot use CA certificates: ${messageOf(error)}`, {}, error);
  }
}

/** True when a connection to the URL's host stood; false when it was refused or aborted. */
export async function dial(
  client: Pick<HttpClient, "dial">,
  url: URL | string,
  signal: AbortSignal,
): Promise<boolean> {
  const { protocol, hostname: host, port: named } = new URL(url);
  const port = Number(named) || (protocol === "https:" ? 443 : 80);
  return await client.dial({ hostname: host.replace(/^\[|\]$/g, ""), port }, signal);
}
