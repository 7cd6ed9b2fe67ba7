import { Failure, messageOf } from "../../base/failure.ts";
import type { CaCertificates } from "./http_settings.ts";

/** Idle connections kept to one upstream: as many as a bulk query of a Nix client uses. */
const IDLE_PER_HOST_MAX = 64;

/** One pool of connections, for all upstreams. Throws when a certificate cannot be used. */
export function createUpstreamClient(caCertificates: CaCertificates): Deno.HttpClient {
  try {
    return Deno.createHttpClient({
      poolMaxIdlePerHost: IDLE_PER_HOST_MAX,
      ...(caCertificates.length === 0 ? {} : { caCerts: [...caCertificates] }),
    });
  } catch (error) {
    throw new Failure("broken", `Cannot use CA certificates: ${messageOf(error)}`, {}, error);
  }
}
