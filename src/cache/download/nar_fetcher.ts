/** What to fetch, and where to put it. */
export interface FetchOrder {
  /** An existing file; what is in it beyond `offset` is overwritten. */
  readonly path: string;
  /** URL of the upstream, as it is configured. */
  readonly upstream: string;
  readonly location: string;
  /** Exactly this many bytes are expected; anything else is refused, at the answer if it says. */
  readonly fileSize?: number;
  /** More than this is refused. */
  readonly fileSizeMax: number;
}

/** What became of a fetch, told in this order: opened, bytes…, then one of the others. */
export type FetchEvent =
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly received: number }
  | { readonly type: "end"; readonly fileSize: number; readonly digest: Uint8Array }
  | { readonly type: "absent" }
  | { readonly type: "failed"; readonly reason: FetchFailure; readonly detail: string };

/** Who is to blame for a fetch that failed. */
export type FetchFailure = "upstream" | "size" | "disk" | "cancelled";

/** Fetches NAR files into files, off the main thread. */
export interface NarFetcher {
  /** `tell` is called for each event, last with one that ends the fetch. */
  fetch(order: FetchOrder, tell: (event: FetchEvent) => void): Disposable;
}
