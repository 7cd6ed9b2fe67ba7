import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import type { RequestHeaders } from "../../base/request_headers.ts";
import {
  fieldWords,
  lowerAscii,
  plainAddress,
  UNIX_PEER,
  withoutBlanks,
} from "../message/message.ts";

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

/**
 * The addresses in a chain of proxies, the client's first. `undefined` stands for a hop that is no
 * address, such as `unknown`.
 */
export type Hops = readonly (string | undefined)[];

/** The hops in an `X-Forwarded-For` field. */
export function readForwardedFor(value: string): Hops {
  return fieldWords(value).map(nodeAddress);
}

/** One element of the list: everything up to a comma outside quotes. */
const ELEMENT_REGEXP = /((?:[^",]|"(?:[^"\\]|\\.)*")*)(,|$)/y;

/** The hops in a `Forwarded` field (RFC 7239). A malformed field is one unknown hop. */
export function readForwarded(value: string): Hops {
  const hops: (string | undefined)[] = [];
  ELEMENT_REGEXP.lastIndex = 0;
  for (;;) {
    const found = ELEMENT_REGEXP.exec(value);
    if (found === null) return [undefined];
    hops.push(forIn(found[1] ?? ""));
    if (found[2] === "") return hops;
  }
}

const PAIR_REGEXP = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*))$/;

/** The address of an element's `for`; `undefined` without one, or with two. */
function forIn(element: string): string | undefined {
  const pairs = element.split(";").map((pair) => PAIR_REGEXP.exec(withoutBlanks(pair)));
  const [only, ...others] = pairs.filter((pair) => lowerAscii(pair?.[1] ?? "") === "for");
  if (only === undefined || others.length > 0) return undefined;
  return nodeAddress(only?.[2]?.replace(/\\(.)/g, "$1") ?? only?.[3] ?? "");
}

/** The address of `192.0.2.7`, `192.0.2.7:80`, `2001:db8::1`, `[2001:db8::1]` or `[…]:80`. */
function nodeAddress(text: string): string | undefined {
  const node = lowerAscii(text);
  const [, bracketed] = /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/.exec(node) ?? [];
  if (bracketed !== undefined) return isIPv6(bracketed) ? plainAddress(bracketed) : undefined;
  const [, withPort] = /^([\d.]+):\d{1,5}$/.exec(node) ?? [];
  if (withPort !== undefined) return isIPv4(withPort) ? withPort : undefined;
  return isIP(node) === 0 || node.includes("%") ? undefined : plainAddress(node);
}
