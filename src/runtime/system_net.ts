import { lookup } from "node:dns/promises";
import type { HttpClient, Net } from "./net.ts";

/** Idle connections kept to one upstream: as many as a bulk query of a Nix client uses. */
const IDLE_PER_HOST_MAX = 64;

/** The network of this machine. */
export const SYSTEM_NET: Net = {
  client(caCertificates): HttpClient {
    const client = Deno.createHttpClient({
      poolMaxIdlePerHost: IDLE_PER_HOST_MAX,
      ...(caCertificates.length === 0 ? {} : { caCerts: [...caCertificates] }),
    });
    return {
      fetch: (url, options) => fetch(url, { ...options, client }),
      async dial({ hostname, port }, signal) {
        try {
          (await Deno.connect({ hostname, port, signal })).close();
          return true;
        } catch {
          // Refused, unknown or aborted: `fetch` reports the same, and better.
          return false;
        }
      },
      async addresses(hostname) {
        const found = await lookup(hostname, { all: true }).catch(() => []);
        return found.map(({ address }) => address);
      },
      [Symbol.dispose]: () => client.close(),
    };
  },
};
