import type { Bytes } from "../../base/bytes.ts";
import type { ClientAddresses, ListedClients } from "../../base/client_addresses.ts";
import { Failure } from "../../base/failure.ts";
import type { RecentRate } from "../../base/recent_rate.ts";
import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { NarName } from "../../nix/nar_name.ts";
import { clock } from "../../runtime/current.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Span, SpanStart, Tracer } from "../../telemetry/tracer.ts";
import type { NarRates } from "../../upstream/pooled_upstream.ts";
import { NoAnswer, type NoAnswerReason } from "../../upstream/upstream.ts";
import { requestFacts } from "../../upstream/watched_sources.ts";
import { announcedFileSize, fileSizeLimit, hasKnownFileHash } from "../nar/nar_naming.ts";
import type { DownloadState } from "../verify/download_state.ts";

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

/** The result of a failed fetch, as label of the upstream's metrics. */
const RESULTS = {
  timeout: "timeout",
  unreachable: "unreachable",
  status: "status",
  upstream: "broken",
  stalled: "broken",
  size: "garbage",
  differs: "garbage",
  outrun: "cancelled",
  room: "cancelled",
  disk: "cancelled",
  cancelled: "cancelled",
} as const satisfies Readonly<Record<FetchFailure, string>>;

interface FetchObservers {
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** False for another member, whose bytes an upstream has sent to it. Default: true. */
  readonly isUpstream?: (url: string) => boolean;
  /** Has the bytes of each transfer as they come. */
  readonly rates?: Pick<NarRates, "begin">;
}

/**
 * A span for each source of a NAR file, up to its last byte. It times the requests to upstreams,
 * and counts the received bytes.
 */
export function observedFetcher<Order>(
  inner: NarFetcher<Order>,
  { metrics, tracer, isUpstream = () => true, rates }: FetchObservers,
): NarFetcher<Order> {
  const bytes = metrics.series("upstream_bytes_total", {});
  return {
    begin(order: Order, listener: FetchListener): NarFetch {
      let counted = 0;
      let isCounting = true;
      let noteRate: ((bytes: number) => void) | undefined;
      const count = (received: number) => {
        const more = Math.max(0, received - counted);
        if (isCounting) bytes.add(more);
        noteRate?.(more);
        counted = Math.max(counted, received);
      };
      const fetch = inner.begin(order, {
        progress(progress) {
          if (progress.type === "bytes") count(progress.received);
          listener.progress(progress);
        },
        room: (wanted) => listener.room(wanted),
      });
      return {
        from: (source, taken, isFinal) =>
          tracer.span(sourceSpan(source), async (span) => {
            const startedAtMs = clock.nowMs();
            const { upstream } = source;
            const isCounted = isUpstream(upstream);
            const outcome = await fetch.from(source, () => {
              isCounting = isCounted;
              noteRate = isCounted ? rates?.begin(upstream) : undefined;
              taken?.();
            }, isFinal);
            if (outcome.type === "end") count(outcome.fileSize);
            noteOutcome(span, outcome);
            if (!isCounted) return outcome;
            const result = resultOf(outcome);
            metrics.histogram("upstream_request_duration_seconds", { upstream, result })
              .observe((clock.nowMs() - startedAtMs) / 1_000);
            return outcome;
          }),
        [Symbol.dispose]: () => fetch[Symbol.dispose](),
      };
    },
  };
}

function sourceSpan({ upstream, location }: NarSource): SpanStart {
  return { name: "GET nar", kind: "client", facts: requestFacts(upstream, location) };
}

function resultOf(outcome: FetchOutcome) {
  if (outcome.type === "failed") return RESULTS[outcome.reason];
  return outcome.type === "end" ? "found" : outcome.type;
}

const GIVEN_UP_REASONS: readonly FetchFailure[] = ["cancelled", "outrun"];

/** Notes the outcome on the span. A cancelled fetch is no failure. */
function noteOutcome(span: Span, outcome: FetchOutcome): void {
  const { type, status } = outcome;
  const isCancelled = type === "failed" && GIVEN_UP_REASONS.includes(outcome.reason);
  span.set({
    "larder.upstream.result": isCancelled ? "cancelled" : type,
    ...(status === undefined ? {} : { "http.response.status_code": status }),
    ...(type === "end" ? { "larder.nar.file_size": outcome.fileSize } : {}),
  });
  if (type === "failed" && !isCancelled) span.fail(outcome.reason);
}

/** The progress of one NAR file in flight. */
export interface TransferProgress {
  readonly narName: NarName;
  readonly state: "opening" | "receiving" | "verifying";
  /** Bytes of the file on disk, or received for a pass-through or from an upload. */
  readonly receivedBytes: number;
  /** The size of the whole file, where it is known. */
  readonly fileSize: number | undefined;
  /** Rate of the last seconds; `undefined` in the first one, and while no bytes are expected. */
  readonly bytesPerSecond: number | undefined;
  readonly startedAtMs: number;
  readonly clients: ListedClients;
}

/** A download, or a pass-through. */
interface TransferFacts extends Pick<TransferProgress, "fileSize" | "startedAtMs"> {
  readonly name: NarName;
  readonly state: DownloadState;
  readonly clients: Pick<ClientAddresses, "listed">;
  /** `undefined` before the first source. */
  readonly rate: RecentRate | undefined;
}

/** NAR files in flight. */
export interface InFlight {
  readonly count: number;
  /** The progress of at most `countMax` files, the oldest first. */
  progress(countMax: number): readonly TransferProgress[];
}

/** The files in flight of several places together. */
export function allInFlight(places: readonly InFlight[]): InFlight {
  return {
    get count() {
      return places.reduce((sum, { count }) => sum + count, 0);
    },
    progress: (countMax) =>
      places.flatMap((place) => place.progress(countMax))
        .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
        .slice(0, countMax),
  };
}

/** `undefined` for a transfer that has failed. */
export function progressOf(
  { name: narName, state: now, fileSize, startedAtMs, clients, rate }: TransferFacts,
): TransferProgress | undefined {
  const bytesPerSecond = now.state === "receiving" ? rate?.bytesPerSecond : undefined;
  const common = { narName, fileSize, bytesPerSecond, startedAtMs, clients: clients.listed() };
  switch (now.state) {
    case "opening":
      return { ...common, state: "opening", receivedBytes: 0 };
    case "receiving":
      return { ...common, state: "receiving", receivedBytes: now.received };
    case "received":
    case "kept":
      return { ...common, state: "verifying", receivedBytes: now.fileSize };
    case "failed":
      return undefined;
  }
}
