import { isIP } from "node:net";
import type { Kind } from "./option.ts";

/** Addresses that share their first `prefix` bits; or every peer of the Unix socket. */
export type AddressRange =
  | { readonly address: string; readonly prefix: number; readonly family: "ipv4" | "ipv6" }
  | "unix";

/** `192.0.2.0/24`, `2001:db8::/32`, a single address, or `unix`. */
export const addressRange: Kind<AddressRange> = {
  placeholder: "CIDR",

  parse(given) {
    if (given === "unix") return given;
    const [, address = "", digits] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(given) ?? [];
    const version = isIP(address);
    const bits = version === 4 ? 32 : 128;
    const prefix = digits === undefined ? bits : Number(digits);
    // An IPv4 client has its IPv4 address on every listener.
    if (version === 0 || prefix > bits || /^::ffff:\d+\./i.test(address)) {
      throw new Error("an address range such as 192.0.2.0/24 or 2001:db8::/32, or unix");
    }
    return { address, prefix, family: version === 4 ? "ipv4" : "ipv6" };
  },

  print: (range) => range === "unix" ? range : `${range.address}/${range.prefix}`,
};
