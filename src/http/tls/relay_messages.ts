import type { ProxyRange } from "../proxy/trusted_proxies.ts";
import type { Link } from "./link.ts";
import type { RelayClosed, RelayLimits } from "./relay.ts";

/** A TCP address of this machine. */
export interface Place {
  readonly hostname: string;
  readonly port: number;
}

/** Messages to the relay's Worker. */
export type ToRelayWorker =
  /** The first one: the address for clients, and the inner listener's. */
  | {
    readonly type: "listen";
    readonly place: Place;
    readonly inner: Place;
    readonly limits: RelayLimits | undefined;
    readonly proxyRanges: readonly ProxyRange[] | undefined;
    readonly sweepEveryMs: number | undefined;
  }
  | { readonly type: "switch"; readonly inner: Place }
  | { readonly type: "known" | "secured" | "innerClosed" | "abort"; readonly link: Link }
  | { readonly type: "stop" };

/** Messages from the relay's Worker. */
export type FromRelayWorker =
  | { readonly type: "listening"; readonly place: Place }
  /** `name`: Deno's name of the error. */
  | { readonly type: "failed"; readonly name: string; readonly message: string }
  | { readonly type: "switched" }
  /** A client's inner connection opened, or closed. */
  | { readonly type: "connected"; readonly link: Link; readonly client: Deno.NetAddr }
  | { readonly type: "disconnected"; readonly link: Link }
  /** The listener and all connections are closed. */
  | { readonly type: "over" }
  | { readonly type: "closed"; readonly reason: RelayClosed };
