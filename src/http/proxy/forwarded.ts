import { isIP, isIPv4, isIPv6 } from "node:net";
import { fieldWords, lowerAscii, withoutBlanks } from "../message/field_words.ts";
import { plainAddress } from "../message/peer.ts";

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
