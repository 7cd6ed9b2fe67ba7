import { isIPv4, isIPv6 } from "node:net";
import { lowerAscii } from "./field_words.ts";

/** A parsed `Host` field, or the host of an origin. */
export interface HostPort {
  /** A name or an address, in lower case and without brackets. */
  readonly name: string;
  readonly isAddress: boolean;
  /** `undefined`: the default of the scheme. */
  readonly port: number | undefined;
}

export const DEFAULT_PORTS = { http: 80, https: 443 } as const;

const HOST_REGEXP = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,255}))(?::(\d{1,5}))?$/;

/** `undefined` unless the text is exactly one name or address. */
export function parseHost(text: string): HostPort | undefined {
  const [, ipv6, plain, digits] = HOST_REGEXP.exec(lowerAscii(text)) ?? [];
  const name = ipv6 ?? plain;
  const port = digits === undefined ? undefined : Number(digits);
  if (name === undefined || (port ?? 0) > 65_535) return undefined;
  if (ipv6 !== undefined && !isIPv6(ipv6)) return undefined;
  return { name, isAddress: ipv6 !== undefined || isIPv4(name), port };
}
