import type { Link } from "./link.ts";
import type { RelayClosed, RelayLimits } from "./relay.ts";

/** A place on this machine, or one to listen at. */
export interface Place {
  readonly hostname: string;
  readonly port: number;
}

/** What the main thread says to the relay's Worker. */
export type ToRelayWorker =
  /** First: where clients come in, and who listens within. */
  | {
    readonly type: "listen";
    readonly place: Place;
    readonly inner: Place;
    readonly limits: RelayLimits | undefined;
    readonly sweepEveryMs: number | undefined;
  }
  | { readonly type: "turn"; readonly inner: Place }
  | { readonly type: "known" | "secured" | "givenUp" | "cut"; readonly link: Link }
  | { readonly type: "stop" };

/** What the relay's Worker answers. */
export type FromRelayWorker =
  | { readonly type: "listening"; readonly place: Place }
  /** By the name that Deno has for the error. */
  | { readonly type: "failed"; readonly name: string; readonly message: string }
  | { readonly type: "turned" }
  /** A client has a connection within, or no longer. */
  | { readonly type: "connected"; readonly link: Link; readonly client: Deno.NetAddr }
  | { readonly type: "disconnected"; readonly link: Link }
  /** Nothing more is taken, and no connection is left. */
  | { readonly type: "over" }
  | { readonly type: "closed"; readonly reason: RelayClosed };
