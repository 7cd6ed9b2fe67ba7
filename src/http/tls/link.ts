declare const brand: unique symbol;

/** Identifies a connection from the relay to an inner listener, on both of its ends. */
export type Link = number & { readonly [brand]: "Link" };

/** `relayPort` is the connection's local port at the relay, `innerPort` the inner listener's. */
export function linkOf({ relayPort, innerPort }: LinkPorts): Link {
  return relayPort * 65_536 + innerPort as Link;
}

interface LinkPorts {
  readonly relayPort: number;
  readonly innerPort: number;
}
