import { Failure, messageOf } from "../../base/failure.ts";
import type { HttpClient, Net } from "../../runtime/net.ts";

/** The settings of one upstream; plain data, so that a Worker can receive it. */
export interface HttpUpstreamSettings {
  /** URL without credentials, query and trailing slash. */
  readonly url: string;
  /** The value of the Authorization header, where there are credentials. */
  readonly authorization?: string;
  /** Set by the operator; overrides the upstream's own nix-cache-info. */
  readonly priority?: number;
  /** True where the environment names a proxy, which `fetch` uses by itself. */
  readonly viaProxy?: boolean;
  readonly dialTimeoutMs: number;
  /** After a third of it, another source of a NAR gets the request too. Prefetches end with it. */
  readonly headerTimeoutMs: number;
  /** The longest silence of an upstream whose connection stands. */
  readonly idleTimeoutMs: number;
  readonly userAgent: string;
}

/** The longest wait for an answer over a connection that stands: slow is not gone. */
export function answerTimeoutOf(
  { headerTimeoutMs, idleTimeoutMs }: Pick<
    HttpUpstreamSettings,
    "headerTimeoutMs" | "idleTimeoutMs"
  >,
): number {
  return Math.max(headerTimeoutMs, idleTimeoutMs);
}

/** PEM texts of certificate authorities to trust besides the system's. */
export type CaCertificates = readonly string[];

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
