import { Buffer } from "node:buffer";
import { isIPv6 } from "node:net";
import type { Kind } from "./option.ts";

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
