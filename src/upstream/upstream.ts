import type { Bytes } from "../base/bytes.ts";
import { Failure } from "../base/failure.ts";
import type { Codec } from "../nix/content_encoding.ts";
import type { DocumentPath } from "../nix/document_name.ts";
import type { Narinfo } from "../nix/narinfo.ts";
import type { OwnSignature } from "../nix/sign_narinfo.ts";
import { isStorePathHash, type StorePathHash } from "../nix/store_path.ts";
import type { QueueTimeout } from "./upstream_queue.ts";

/** An upstream's answer to a request for a document. */
export type DocumentReading =
  | { readonly kind: "found"; readonly text: string }
  | { readonly kind: "absent" }
  | {
    readonly kind: "failed";
    readonly reason: UpstreamFailure;
    readonly detail: string;
    /** The status of a response that is an error. */
    readonly status?: number;
    /** Set where a check compared the answer with what it must be: the part that differs. */
    readonly differs?: "signature" | "narinfo";
    /** The name of a given key that did not make the signature of that name. */
    readonly wrongKey?: string;
  };

/** An upstream's answer to any request. */
export type UpstreamReading =
  | { readonly kind: "found" }
  | Exclude<DocumentReading, { kind: "found" }>;

/** Why an upstream's answer is of no use. Label values: the set is closed. */
export type UpstreamFailure = "timeout" | "unreachable" | "status" | "garbage" | "untrusted";

/** The kinds of requests to an upstream. Each has a health of its own. */
export type RequestKind = "narinfo" | "nar" | "document";

/** Why no answer came: that speaks of the upstream's health. */
export type NoAnswerReason = "timeout" | "unreachable";

/** `undefined`: an answer came, be it nonsense. */
export function noAnswerReasonOf(reading: UpstreamReading): NoAnswerReason | undefined {
  const reason = reading.kind === "failed" ? reading.reason : undefined;
  return reason === "timeout" || reason === "unreachable" ? reason : undefined;
}

/** No answer came. An upstream that answers, be it nonsense, is up. */
export class NoAnswer extends Failure {
  readonly reason: NoAnswerReason;

  constructor(reason: NoAnswerReason, message: string, cause?: unknown) {
    super("upstream-down", message, {}, cause);
    this.reason = reason;
  }
}

/** The upstream has the paths of another store directory: none of them is of use. */
export class ForeignStore extends Failure {
  constructor(storeDir: string) {
    super("corrupt", `Cannot use upstream: its store directory is ${storeDir}`);
  }
}

/** An upstream's answer to a request for a narinfo, parsed and verified. */
export type NarinfoReading =
  | {
    readonly kind: "found";
    readonly narinfo: Narinfo;
    /** True when a trusted key signed it. */
    readonly trusted: boolean;
    /** larder's signature, if the Worker made one while verifying. */
    readonly ownSignature?: OwnSignature;
    readonly tookMs?: number;
  }
  | {
    readonly kind: "absent";
    /** How long the upstream took, if that is long. */
    readonly tookMs?: number;
  }
  | Extract<DocumentReading, { kind: "failed" }>;

/** An answer that takes longer is slow: a client notices that. */
export const SLOW_ANSWER_MS = 1_000;

/** A NAR file's bytes to its end. Read `body` to its end, or cancel it. */
export interface NarBody {
  /** Bytes of the whole file, where the upstream says so. */
  readonly fileSize?: number;
  /** Offset of `body`: the requested one, or 0 from an upstream without ranges. */
  readonly offset: number;
  /** A stream of bytes, which gives BYOB readers. */
  readonly body: ReadableStream<Uint8Array>;
  /** False where nothing but the connection's end ends the body: a cut one looks whole. */
  readonly framed: boolean;
  /** Names these very bytes at this upstream: a strong entity tag, quotes included. */
  readonly tag?: string;
}

/** The narinfos of a binary cache. */
export interface NarinfoSource {
  /** Its URL without credentials: names it in rows, logs and labels. */
  readonly url: string;
  /** Never throws: errors are readings. */
  narinfo(
    storePathHash: StorePathHash,
    signal?: AbortSignal,
    rank?: RequestRank,
  ): Promise<NarinfoReading>;
  /** The operator sets it. It overrides the announced one. */
  readonly priority: number | undefined;
  /**
   * The priority that it announces; `undefined`: none. Throws NoAnswer when none came, and a
   * Failure "corrupt" when it says nothing of use.
   */
  describe(signal?: AbortSignal): Promise<number | undefined>;
  /**
   * False if no connection came up within the dial timeout, or before `signal` ended the attempt.
   * True if larder cannot find out, as behind a proxy. Never throws.
   */
  reach(signal: AbortSignal): Promise<boolean>;
}

export type QueuedReading = NarinfoReading | QueueTimeout;

/** The rank of a queued request: "client" if a client waits for it, "prefetch" for a prefetch. */
export type RequestRank = "client" | "prefetch";

/** A binary cache behind a queue of ours. One without a queue is one, too. */
export interface QueuedNarinfoSource extends Omit<NarinfoSource, "narinfo"> {
  /** Never throws: errors are readings. */
  narinfo(
    storePathHash: StorePathHash,
    signal?: AbortSignal,
    rank?: RequestRank,
  ): Promise<QueuedReading>;
  /** The upstream refused a request because it was too busy. */
  busy?(): void;
  /** Its answer with a NAR took so long to its head; Infinity for none in time, or outrun. */
  noteNarTime?(tookMs: number): void;
  /** True while requests that clients wait for keep the upstream busy. */
  readonly isOverloaded?: boolean;
  /** True while the next request of a client would queue. */
  readonly hasQueue?: boolean;
}

/** A request for bytes of a NAR file. */
export interface NarRequest {
  /** The first byte, where the upstream can begin there. */
  readonly offset: number;
  /** The offset counts only while the file has this tag. */
  readonly tag?: string | undefined;
  readonly signal: AbortSignal;
  /** True: no retries. */
  readonly isFinal?: boolean;
  /** Called before each request. */
  readonly requested?: (() => void) | undefined;
}

/** What an upstream says of a NAR file without its bytes. */
export interface NarHead {
  readonly fileSize?: number;
  /** From a larder that keeps the file in another form than its name says. */
  readonly storePathHash?: StorePathHash;
}

export interface NarBodySource {
  readonly url: string;
  /**
   * Starts a NAR file at `location`, a path and query below the upstream's URL. `undefined` means
   * that the upstream does not have it; a throw, that it could not tell.
   */
  openNar(location: string, request: NarRequest): Promise<NarBody | undefined>;
  /** What is known of the file; `undefined` as for `openNar`. */
  statNar(location: string, signal?: AbortSignal): Promise<NarHead | undefined>;
}

/** The body of a document. Read `pieces` to its end, or cancel it. */
export interface DocumentBody {
  /** The Content-Encoding, in the names that clients know. An unknown one is as it came. */
  readonly encoding: string | undefined;
  /**
   * The encodings of the bytes as far as larder knows them, the last one outermost. Without a
   * Content-Encoding, that of the compressed file that the bytes begin as.
   */
  readonly codecs: readonly Codec[];
  /** Bytes of the whole body, where the upstream says so. */
  readonly bodyBytes: number | undefined;
  /** False where only the connection's end ends the body: a cut one may look whole. */
  readonly framed: boolean;
  /** Its bytes, once; throws when they stop coming. */
  readonly pieces: AsyncGenerator<Bytes>;
  /** Gives the connection back at once; `pieces` then throws. */
  cancel(): void;
}

export type DocumentAnswer =
  | { readonly kind: "found"; readonly body: DocumentBody }
  | Exclude<UpstreamReading, { kind: "found" }>;

/** A binary cache behind a queue of ours. */
export interface QueuedDocumentSource {
  readonly url: string;
  /** Never throws: errors are answers. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer | QueueTimeout>;
}

/** The documents of a binary cache: all but narinfos and NARs. */
export interface DocumentSource {
  readonly url: string;
  /** Never throws: errors are answers. `signal` ends the body too. */
  openDocument(path: DocumentPath, signal: AbortSignal): Promise<DocumentAnswer>;
}

/**
 * The absolute URL of `location`, a relative reference below `baseUrl` with its query.
 * `undefined` when it is no reference, or leads to another host or out of the base's path.
 */
export function resolveLocation(baseUrl: string, location: string): URL | undefined {
  const base = new URL(baseUrl.endsWith("/") ? baseUrl : baseUrl + "/");
  const url = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (url === undefined || url.origin !== base.origin) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "") return undefined;
  if (!url.pathname.startsWith(base.pathname)) return undefined;
  // Some servers decode before they resolve dots: refuse paths that could climb there.
  return ENCODED_CLIMB_REGEXP.test(url.pathname) ? undefined : url;
}

const ENCODED_CLIMB_REGEXP = /%2f|%5c|%00|(^|\/)(\.|%2e){2}(\/|$)/i;

/** True if `resolveLocation` accepts it; nearly all locations are plain paths, and cheap. */
export function isBelow(baseUrl: string, location: string): boolean {
  return PLAIN_LOCATION_REGEXP.test(location) || resolveLocation(baseUrl, location) !== undefined;
}

const PLAIN_LOCATION_REGEXP = /^nar\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * The Link header of a NAR whose bytes do not have the hash in its name: it leads to the narinfo of
 * a store path with this NAR. A larder behind this one has no other way to check them.
 */
export function linkToPath(storePathHash: StorePathHash): string {
  return `<../${storePathHash}.narinfo>; rel="describedby"`;
}

/** The store path in such a header. */
export function describedPath(link: string | null): StorePathHash | undefined {
  const [, hash = ""] = LINK_REGEXP.exec(link ?? "") ?? [];
  return isStorePathHash(hash) ? hash : undefined;
}

const LINK_REGEXP = /<\.\.\/([0-9a-z]{32})\.narinfo>; rel="describedby"/;

/** The small body of an upstream's answer, to be decoded. */
export interface EncodedOrder {
  /** The encodings, the last one outermost. */
  readonly codecs: readonly Codec[];
  /** The largest decoded body. */
  readonly bytesMax: number;
  /** The upstream that sent it. */
  readonly upstream: string;
}

/** Decodes a body. Throws a Failure "corrupt" for a damaged or larger one. */
export type DecodeBody = (bytes: Bytes, order: EncodedOrder) => Promise<Bytes>;
