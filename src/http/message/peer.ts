import { BlockList, isIPv4, isIPv6 } from "node:net";

/** Whoever connects to a Unix socket has no address. */
export const UNIX_PEER = "unix";

const MAPPED_REGEXP = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/**
 * The address at the other end of a connection, without a port; `unix` for a Unix socket. A client
 * of IPv4 has the same address whether the listener is of IPv4 or of both.
 */
export function peerAddress(remote: Deno.Addr): string {
  if (!("hostname" in remote)) return UNIX_PEER;
  return MAPPED_REGEXP.exec(remote.hostname)?.[1] ?? remote.hostname;
}

/** True for a peer on the loopback address or the Unix socket; false where nobody knows. */
export function isOfThisMachine(peer: string | undefined): boolean {
  if (peer === undefined) return false;
  if (isIPv4(peer)) return LOOPBACK.check(peer, "ipv4");
  return peer === UNIX_PEER || isIPv6(peer) && LOOPBACK.check(peer, "ipv6");
}
