import { UNIX_PEER } from "../message/peer.ts";

/**
 * Groups things by the address of their peer. IPv6 counts by its first 64 bits: a client that has
 * one such address has all of them. A Unix socket has no address, and its clients no group.
 */
export class ByAddress<T> {
  readonly #groups = new Map<string, Set<T>>();

  /** `peer` is what `peerAddress` tells. */
  add(peer: string, item: T): void {
    if (peer === UNIX_PEER) return;
    const key = networkOf(peer);
    const group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, new Set([item]));
    else group.add(item);
  }

  delete(peer: string, item: T): void {
    const key = networkOf(peer);
    const group = this.#groups.get(key);
    group?.delete(item);
    if (group?.size === 0) this.#groups.delete(key);
  }

  /** What was added for this address and its network. */
  of(peer: string): ReadonlySet<T> {
    return this.#groups.get(networkOf(peer)) ?? NONE;
  }
}

const NONE: ReadonlySet<never> = new Set();

const GROUPS = 8;
const NETWORK_GROUPS = 4;

function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: GROUPS - first.length - last.length }, () => "0");
  return [...first, ...zeros, ...last].slice(0, NETWORK_GROUPS).join(":");
}
