import { Failure } from "../../base/failure.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import { NoAnswer, type NoAnswerReason } from "../../upstream/upstream.ts";
import type { NarOrder } from "./nar_sink.ts";

/** The file to fetch a NAR into, from one source or several in turn. */
export interface FetchOrder extends NarOrder {
  /** An existing file; it is overwritten. */
  readonly path: string;
  /** Bytes that the file may have before it needs more room. */
  readonly roomBytes: number;
}

/** The progress of a file: opened before the first bytes, then bytes. */
export type FetchProgress =
  /** Comes again when another source answers before the first bytes. */
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly received: number };

/** The result of a request to one source, stored or passed through. */
export type SourceOutcome = Ending & {
  /** The status of the response, if any. */
  readonly status?: number;
  /** Requests that the upstream received. */
  readonly requests?: number;
};

type Ending =
  | {
    readonly type: "end";
    readonly fileSize: number;
    /** Set where the upstream sent surplus bytes, which stay unread. */
    readonly surplus?: true;
  }
  | { readonly type: "absent" }
  | { readonly type: "failed"; readonly reason: FetchFailure; readonly detail: string };

/** The file is complete. */
export type FetchEnd = Extract<SourceOutcome, { type: "end" }> & {
  readonly digest: Uint8Array;
  /** Nothing but the connection's end ended the body: only a hash can tell a cut one. */
  readonly maybeShort: boolean;
};

/** The result for a file that is stored. */
export type FetchOutcome = FetchEnd | Exclude<SourceOutcome, { type: "end" }>;

export type FetchEvent = FetchProgress | FetchOutcome;

/**
 * Why a source did not send the whole file. "timeout" and "unreachable": no answer. "status": a
 * response without a usable body. "upstream": the body broke. "stalled": it stood still. "size" and
 * "differs": it contradicts the announcement, or the bytes so far. "outrun": another source
 * answered first. After "room" (no space for more bytes), "disk" and "cancelled" no source can
 * help.
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
  /** Resolves to the bytes that may be written in all; fewer than `bytes` where they do not fit. */
  room(bytes: number): Promise<number>;
}

/** A file in flight. Dispose of it after the last source. */
export interface NarFetch extends Disposable {
  /**
   * Fetches the rest from `source`. Several may be in flight: the first to answer is `taken`, the
   * others end as "outrun". `isFinal`: no retries. Never rejects.
   */
  from(source: NarSource, taken?: () => void, isFinal?: boolean): Promise<FetchOutcome>;
}

/** Fetches NAR files, each into the destination of its order: a file by default. */
export interface NarFetcher<Order = FetchOrder> {
  begin(order: Order, listener: FetchListener): NarFetch;
}

/** A source did not send the whole NAR file; `reason` says why. */
export class FetchError extends Error {
  readonly reason: FetchFailure;

  constructor(reason: FetchFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * The reason for any error of a request or its body. A Failure is a response without a usable body;
 * a broken body throws the network's error.
 */
export function fetchFailureOf(error: unknown): FetchFailure {
  if (error instanceof FetchError || error instanceof NoAnswer) return error.reason;
  return error instanceof Failure ? "status" : "upstream";
}
