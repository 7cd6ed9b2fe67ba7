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

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * The address, or the first 64 bits of an IPv6 one: a client usually owns all addresses below.
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: GROUPS - first.length - last.length }, () => "0");
  return [...first, ...zeros, ...last].slice(0, NETWORK_GROUPS).join(":");
}
