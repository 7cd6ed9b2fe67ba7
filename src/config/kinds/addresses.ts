import { Buffer } from "node:buffer";
import { isIP, isIPv6 } from "node:net";
import type { Kind } from "./option.ts";
import type { NetworkAddress } from "../../base/network_address.ts";

/** The address of a server. Without a host name it is all interfaces; port 0 is any free port. */
export type ListenAddress =
  | { readonly kind: "tcp"; readonly hostname?: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

// The kernel's sun_path has 108 bytes, one of them for the final NUL.
const SOCKET_PATH_BYTES_MAX = 107;

const TCP_REGEXP = /^(?:\[([^\]]+)\]|([A-Za-z0-9._-]*)):(\d{1,5})$/;

/** `:8501`, `localhost:8501`, `[::1]:8501` or `unix:/run/larder.sock`. */
export const listenAddress: Kind<ListenAddress> = {
  placeholder: "ADDRESS",

  parse(given) {
    const address = given.startsWith("unix:") ? unixAddress(given.slice(5)) : tcpAddress(given);
    if (address === undefined) {
      throw new Error("an address such as :8501, localhost:8501, [::1]:8501 or unix:/path");
    }
    return address;
  },

  print(address) {
    if (address.kind === "unix") return `unix:${address.path}`;
    const { hostname = "", port } = address;
    return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  },
};

function unixAddress(path: string): ListenAddress | undefined {
  if (path === "" || path.includes("\0")) return undefined;
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(`a socket path of at most ${SOCKET_PATH_BYTES_MAX} bytes`);
  }
  return { kind: "unix", path };
}

function tcpAddress(text: string): ListenAddress | undefined {
  const [, bracketed, plain = "", digits = ""] = TCP_REGEXP.exec(text) ?? [];
  const port = Number(digits);
  if (digits === "" || port > 65_535) return undefined;
  if (bracketed !== undefined && !isIPv6(bracketed)) return undefined;
  const hostname = bracketed ?? plain;
  return hostname === "" ? { kind: "tcp", port } : { kind: "tcp", hostname, port };
}

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

/** Addresses that share their first `prefix` bits; or every peer of the Unix socket. */
export type AddressRange =
  | { readonly address: string; readonly prefix: number; readonly family: "ipv4" | "ipv6" }
  | "unix";

/** `192.0.2.0/24`, `2001:db8::/32`, a single address, or `unix`. */
export const addressRange: Kind<AddressRange> = {
  placeholder: "CIDR",

  parse(given) {
    if (given === "unix") return given;
    const [, address = "", digits] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(given) ?? [];
    const version = isIP(address);
    const bits = version === 4 ? 32 : 128;
    const prefix = digits === undefined ? bits : Number(digits);
    // An IPv4 client has its IPv4 address on every listener.
    if (version === 0 || prefix > bits || /^::ffff:\d+\./i.test(address)) {
      throw new Error("an address range such as 192.0.2.0/24 or 2001:db8::/32, or unix");
    }
    return { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
  },

  print: (range) => range === "unix" ? range : `${range.address}/${range.prefix}`,
};
