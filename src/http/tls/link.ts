declare const brand: unique symbol;

/** Names a connection from the relay to a listener within: the same on both of its ends. */
export type Link = number & { readonly [brand]: "Link" };

/** `relayPort` is where the connection begins, `innerPort` where it was accepted. */
export function linkOf({ relayPort, innerPort }: LinkPorts): Link {
  return relayPort * 65_536 + innerPort as Link;
}

interface LinkPorts {
  readonly relayPort: number;
  readonly innerPort: number;
}
