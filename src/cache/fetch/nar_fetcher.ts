import type { NarSource } from "../../metadata/metadata_store.ts";
import type { NoAnswerReason } from "../../upstream/upstream.ts";
import type { NarOrder } from "./nar_sink.ts";

/** The file that a NAR is fetched into, from one source or from several after each other. */
export interface FetchOrder extends NarOrder {
  /** An existing file; what is in it goes. */
  readonly path: string;
  /** Bytes that may be written before more room is asked for. */
  readonly roomBytes: number;
}

/** How a file grows: opened before the first bytes, then bytes. */
export type FetchProgress =
  /** Told again when nothing has come but another source has answered. */
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly received: number };

/** What became of one source of a NAR file, whether it is kept or not. */
export type SourceOutcome = Ending & {
  /** Of the answer, where there was one. */
  readonly status?: number;
  /** Requests that the upstream got. */
  readonly requests?: number;
};

type Ending =
  | {
    readonly type: "end";
    readonly fileSize: number;
    /** Set where more was sent behind the file, which was not read. */
    readonly surplus?: true;
  }
  | { readonly type: "absent" }
  | { readonly type: "failed"; readonly reason: FetchFailure; readonly detail: string };

/** All of the file is here. */
export type FetchEnd = Extract<SourceOutcome, { type: "end" }> & {
  readonly digest: Uint8Array;
  /** Nothing said where the body ends: it may have been cut, and only a hash can tell. */
  readonly maybeShort: boolean;
};

/** The same of a file that is kept. */
export type FetchOutcome = FetchEnd | Exclude<SourceOutcome, { type: "end" }>;

export type FetchEvent = FetchProgress | FetchOutcome;

/**
 * Why a source did not come to the end. "timeout" and "unreachable": its upstream was not there.
 * "status": it answered without a body of use; "upstream": the body broke; "stalled": it stood
 * still. "size" and "differs": what it has is not what was announced, or not what is here already.
 * "outrun": another one answered first. After "room" (there is none for more bytes), "disk" and
 * "cancelled" no source can help.
 */
export type FetchFailure =
  | NoAnswerReason
  | "status"
  | "upstream"
  | "stalled"
  | "size"
  | "differs"
  | "outrun"
  | "room"
  | "disk"
  | "cancelled";

export interface FetchListener {
  progress(progress: FetchProgress): void;
  /** Resolves to how many bytes may be written in all; fewer than `bytes` where they cannot. */
  room(bytes: number): Promise<number>;
}

/** A file under way. Dispose of it when no source is to be asked any more. */
export interface NarFetch extends Disposable {
  /**
   * Goes on from `source` where the file ends. Several may be asked at a time: the first to answer
   * is `taken`, the others end as "outrun". Never rejects.
   */
  from(source: NarSource, taken?: () => void): Promise<FetchOutcome>;
}

/** Fetches NAR files, each into what its order names: a file, unless it says otherwise. */
export interface NarFetcher<Order = FetchOrder> {
  begin(order: Order, listener: FetchListener): NarFetch;
}
