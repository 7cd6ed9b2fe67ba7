import type { NetworkAddress } from "../../base/network_address.ts";
import type { Kind } from "./option.ts";

/** `HOST:PORT` of a server to connect to; IPv6 addresses stand in brackets. */
export function networkAddress(defaultPort: number): Kind<NetworkAddress> {
  return {
    placeholder: "HOST:PORT",
    parse(given) {
      const url = URL.parse(`tcp://${given}`);
      const isPlain = url !== null && url.hostname !== "" &&
        `${url.pathname}${url.search}` === "" &&
        `${url.hash}${url.username}${url.password}` === "" && !given.includes("@");
      if (!isPlain) throw new Error(`HOST:PORT, such as redis.example:${defaultPort}`);
      const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
      return { host, port: url.port === "" ? defaultPort : Number(url.port) };
    },
    print: ({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`,
  };
}
