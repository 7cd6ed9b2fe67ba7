import { addressRange, listenAddress } from "../kinds/addresses.ts";
import { boolean, fileMode, hostName, integer, location, path, text } from "../kinds/plain.ts";
import { listOf } from "../kinds/list.ts";
import { durationOrOff } from "../kinds/duration.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options of the HTTP server. */
export const SERVER_OPTIONS = {
  "server.addr": {
    kind: listenAddress,
    default: { kind: "tcp", port: 8501 },
    help: "Listen address: :PORT, HOST:PORT or unix:PATH",
    details: "Without a host larder listens on every address. Port 0 is any free port.",
  },
  "server.allowed-hosts": {
    kind: listOf(hostName),
    default: [],
    help: "Host name of larder for browsers",
    details:
      "Addresses, localhost, the machine's name and cache.hostname always are. Programs use any.",
  },
  "server.tls-cert": {
    kind: path,
    shown: "none",
    help: "Certificate chain (PEM) for HTTPS",
    details:
      "Read again when it changes; connections that are open stay. Goes with server.tls-key.",
  },
  "server.tls-key": {
    kind: path,
    isSecretFile: true,
    shown: "none",
    help: "Private key (PEM) of the certificate",
    details: "Read again when it changes.",
  },
  "server.socket-mode": {
    kind: fileMode,
    default: 0o660,
    help: "Permissions of the Unix socket",
    details: "Write permission allows to connect: by default for the socket's owner and group.",
  },
  "server.socket-group": {
    kind: text,
    shown: "that of larder",
    example: "nginx",
    help: "Group of the Unix socket: a name or a number",
    details: "Larder's user must be a member. A name is looked up in /etc/group.",
  },
  "server.drain-delay": {
    kind: durationOrOff,
    default: 0,
    help: "How long to go on serving after a stop signal, with /readyz at 503",
    details: "For load balancers that probe /readyz. A second signal stops at once.",
  },
  "server.trusted-proxies": {
    kind: listOf(addressRange),
    default: [],
    help: "Address range of a proxy that says where its clients come from",
    details:
      "By Forwarded or X-Forwarded-For. `unix` is the Unix socket, which any other range includes.",
  },
  "server.proxy-protocol": {
    kind: boolean,
    default: false,
    help: "Expect a PROXY header (version 2) at the beginning of each connection",
    details: "From server.trusted-proxies alone; without any, from this machine alone.",
  },
  "server.accel-redirect": {
    kind: location,
    shown: "none",
    example: "/larder-nars/",
    help: "Internal location of nginx, which then sends stored NARs itself",
    details: "Goes with server.trusted-proxies. docs/reverse-proxy.md has the lines for nginx.",
  },
  "server.connections-per-address": {
    kind: integer(1, 1_000_000),
    shown: "a quarter of all",
    example: "2048",
    help: "Limit of open connections from one client address",
    details:
      "At most 8192 are open in all. IPv6 counts by its first 64 bits. Trusted proxies have none.",
  },
} as const satisfies OptionTable;
