import { Failure } from "../../base/failure.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import { NoAnswer, type NoAnswerReason } from "../../upstream/upstream.ts";
import type { Bytes } from "../../base/bytes.ts";
import { announcedFileSize, fileSizeLimit, hasKnownFileHash } from "../nar/nar_naming.ts";

/** The facts of a NAR file before any source has answered. */
export interface NarOrder {
  /** The exact size; larder refuses a response that announces another one. */
  readonly fileSize?: number;
  /** larder refuses a larger file. */
  readonly fileSizeMax: number;
  /** A hash identifies the bytes, so that any source can send the rest. */
  readonly anySource: boolean;
}

/** The requested byte range, and the bytes that the client already has. */
export interface NarPart {
  readonly start: number;
  /** `undefined`: the file's end. */
  readonly end: number | undefined;
  /** The client's bytes up to `start`; the new bytes must be the same. */
  readonly sent?: {
    /** The offset of the client's first byte. */
    readonly from: number;
    at(position: number, length: number): Uint8Array;
  };
}

/** The point where the next source is to begin. */
export interface ResumePoint {
  readonly offset: number;
  /** Tag of the file that may continue; another file must begin at 0. */
  readonly tag?: string;
}

/**
 * The destination of one NAR file's bytes, from one source or several in turn. It hashes the bytes.
 * One source writes at a time.
 */
export interface NarSink extends Disposable {
  readonly order: NarOrder;
  /** The count of leading bytes that arrived. */
  readonly received: number;
  /** The order's size, else the one that the source of the first bytes announced. */
  readonly fileSize: number | undefined;
  /** SHA-256 of the bytes so far. */
  readonly digest: Uint8Array;
  /** True where the caller may reuse the memory of the bytes once `write` is over. */
  readonly copies: boolean;
  /** The point where `source` is to begin. */
  resumeAt(source: NarSource): ResumePoint;
  /** The next bytes are from `source`, whose response has these facts. */
  begin(source: NarSource, answer: { readonly fileSize?: number; readonly tag?: string }): void;
  /** False where other bytes are known at `position`. */
  has(bytes: Uint8Array, position: number): boolean;
  /**
   * Appends bytes; call it again when it is over. Throws FetchError "disk" or "room" when the sink
   * cannot take them, and "differs" when they contradict its bytes.
   */
  write(bytes: Bytes): Promise<void> | void;
  /** The source has ended or failed. */
  pause(): void;
}

/** The order for the NAR file of a narinfo. */
export function narOrderOf(nar: NarRow): NarOrder {
  const fileSize = announcedFileSize(nar);
  return {
    ...(fileSize === undefined ? {} : { fileSize }),
    fileSizeMax: fileSize ?? fileSizeLimit(nar),
    anySource: hasKnownFileHash(nar),
  };
}

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
 * response without a usable body. "upstream": the body broke. "stalled": it paused for too long.
 * "size" and "differs": it contradicts the announcement, or the bytes so far. "outrun": another
 * source answered first. After "room" (no space for more bytes), "disk" and "cancelled" no source
 * can help.
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

/** A file in flight. Its disposal ends all of its requests as "cancelled". */
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
