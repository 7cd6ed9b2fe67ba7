import { networkOf } from "../../base/network_of.ts";
import { UNIX_PEER } from "../message/peer.ts";

/**
 * Groups items by the address of their peer. IPv6 counts by its first 64 bits, as a client usually
 * owns all addresses below. Peers of a Unix socket have no group.
 */
export class ByAddress<T> {
  readonly #groups = new Map<string, Set<T>>();

  /** `peer`: an address as `peerAddress` returns it. */
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

  /** The items of this address and its network. */
  of(peer: string): ReadonlySet<T> {
    return this.#groups.get(networkOf(peer)) ?? NONE;
  }
}

const NONE: ReadonlySet<never> = new Set();
