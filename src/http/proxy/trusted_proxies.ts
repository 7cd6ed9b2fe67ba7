import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { UNIX_PEER } from "../message/peer.ts";
import { type Hops, readForwarded, readForwardedFor } from "./forwarded.ts";

/** Addresses of proxies; `unix` is every peer of the Unix socket. */
export type ProxyRange =
  | { readonly address: string; readonly prefix: number; readonly family: "ipv4" | "ipv6" }
  | "unix";

/** The proxies that may name a client's address. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #hasRanges: boolean;

  constructor(ranges: readonly ProxyRange[]) {
    this.#hasRanges = ranges.length > 0;
    for (const range of ranges) {
      if (range !== "unix") this.#ranges.addSubnet(range.address, range.prefix, range.family);
    }
  }

  /** True for a trusted proxy. With any range, peers of the Unix socket are: they are local. */
  trusts(peer: string): boolean {
    if (peer === UNIX_PEER) return this.#hasRanges;
    if (isIPv4(peer)) return this.#ranges.check(peer, "ipv4");
    return isIPv6(peer) && this.#ranges.check(peer, "ipv6");
  }

  /**
   * The client of a request that came from `peer`: the last hop that is no trusted proxy. A client
   * can write hops of its own, but only in front of those that proxies add.
   *
   * A proxy usually sets one of the two fields and passes the other one on. So if they disagree,
   * larder believes neither.
   */
  clientOf(peer: string, headers: RequestHeaders): string {
    if (!this.trusts(peer)) return peer;
    const forwarded = headers.get("forwarded");
    const forwardedFor = headers.get("x-forwarded-for");
    const one = forwarded === null ? undefined : this.#lastOf(readForwarded(forwarded), peer);
    const other = forwardedFor === null
      ? undefined
      : this.#lastOf(readForwardedFor(forwardedFor), peer);
    if (one !== undefined && other !== undefined && one !== other) return peer;
    return one ?? other ?? peer;
  }

  #lastOf(hops: Hops, peer: string): string {
    let client = peer;
    for (const hop of hops.toReversed()) {
      if (hop === undefined) return client;
      client = hop;
      if (!this.trusts(hop)) return client;
    }
    return client;
  }
}
