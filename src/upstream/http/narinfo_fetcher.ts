import type { StorePathHash } from "../../nix/store_path.ts";
import type { NarinfoReading } from "../upstream.ts";

/** A request for a narinfo; plain data, so that a Worker can receive it. */
export interface NarinfoOrder {
  readonly storePathHash: StorePathHash;
  /** Headers of the request beside the upstream's own. */
  readonly headers: Readonly<Record<string, string>>;
  /** True: no retries, because no client waits. */
  readonly isFinal: boolean;
}

/** The signal that ends a request, and the listeners to its responses. */
export interface NarinfoWatch {
  readonly signal: AbortSignal;
  /** Called with the status of the final response. */
  readonly answered: (status: number) => void;
  /** Called with each response that says that the upstream is too busy, retried or not. */
  readonly busy: () => void;
}

/** Requests the narinfos of one upstream, without timeouts: its caller has them. */
export interface NarinfoFetcher {
  /** Errors are readings, also the reason of a signal that fired; only a bug rejects. */
  fetch(order: NarinfoOrder, watch: NarinfoWatch): Promise<NarinfoReading>;
}
