import { BlockList, isIPv4, isIPv6 } from "node:net";

/** The address of all clients of a Unix socket. */
export const UNIX_PEER = "unix";

const MAPPED_REGEXP = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * The address of a connection's peer, without a port; `unix` for a Unix socket. An IPv4 client has
 * the same address on every listener.
 */
export function peerAddress(remote: Deno.Addr): string {
  if (!("hostname" in remote)) return UNIX_PEER;
  return plainAddress(remote.hostname);
}

/** The IPv4 address in an IPv6 one that holds one; else the address itself. */
export function plainAddress(address: string): string {
  return MAPPED_REGEXP.exec(address)?.[1] ?? address;
}

/** True for a peer on the loopback address or the Unix socket; false if unknown. */
export function isOfThisMachine(peer: string | undefined): boolean {
  if (peer === undefined) return false;
  if (isIPv4(peer)) return LOOPBACK.check(peer, "ipv4");
  return peer === UNIX_PEER || isIPv6(peer) && LOOPBACK.check(peer, "ipv6");
}
