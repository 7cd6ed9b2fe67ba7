import type { OpenOptions } from "../../storage/nar_store.ts";

/** The client of a request. */
export interface Client extends OpenOptions {
  /** Its address; `undefined` if unknown. */
  readonly peer?: string;
  /** Aborts also when the client has ended its side: expensive work ends. Default: `signal`. */
  readonly hungUp?: AbortSignal;
}

/** A client, and the id of its request. */
export interface Requester {
  readonly requestId: string;
  readonly client: Client;
}
