import type { Settings } from "../../config/options.ts";
import type { ServerAddress } from "./server_address.ts";

/**
 * Where a server with these settings answers on its own machine. `undefined`: on a port of its
 * choice, or only behind a proxy that sends PROXY headers.
 */
export function ownAddress(settings: Settings): ServerAddress | undefined {
  const address = settings["server.addr"];
  if (settings["server.proxy-protocol"]) return undefined;
  if (address.kind === "unix") return { kind: "unix", path: address.path };
  if (address.port === 0) return undefined;
  const scheme = settings["server.tls-cert"] === undefined ? "http" : "https";
  return { kind: "http", url: `${scheme}://${hostOf(address.hostname)}:${address.port}` };
}

function hostOf(hostname: string | undefined): string {
  if (hostname === undefined || hostname === "::" || hostname === "0.0.0.0") return "localhost";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
