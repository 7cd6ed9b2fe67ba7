import type { Bytes } from "../../base/bytes.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import type { Stretch } from "../../base/wait_notes.ts";

/** A request of another method changes nothing. */
export const CHANGING_METHODS: ReadonlySet<string> = new Set(["POST", "PUT", "DELETE"]);

/** A request for the app. A `Request` is one, too. */
export interface ClientRequest {
  readonly method: string;
  /** Path and query exactly as sent. Those of a whole URL count, too. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** The HTTP version, such as "1.1"; `undefined` if unknown. */
  readonly httpVersion?: string;
  /** The client's address, as `peerAddress` returns it, or as a trusted proxy says. */
  readonly peer?: string;
  /** True if a proxy passed the connection on, and said where from. */
  readonly viaProxy?: boolean;
  /** True if a trusted proxy sent the request. */
  readonly ofTrustedProxy?: boolean;
  /** `null` if the head announces none. The app need not read it. */
  readonly body: ReadableStream<Bytes> | null;
  /** True while clients hold so much that this answer must not add a large copy of its own. */
  readonly savesMemory?: boolean;
  /** Says that the answer waits on purpose: the connection may make room for others. */
  heldBack?(): void;
  /** Refuses the client where the app waits for its body: others need the memory. */
  giveUpBody?(): void;
  /** Aborts when the client leaves before it has the whole answer. */
  readonly signal: AbortSignal;
  /**
   * Aborts also when the client has ended its side of the connection, as a program does that is
   * stopped. It may still read. Default: `signal`.
   */
  readonly hungUp?: AbortSignal;
}

/**
 * The end of an answer. Sent whole; cut short, as the client left, larder stopped, or larder closed
 * the connection to a client that took nothing; or broken, as the body is bad.
 */
export type DeliveryEnd = "sent" | CutShort | "broken";

/** Who cut an answer short: the client, larder as it stopped, or larder for its own bounds. */
export type CutShort = "left" | "stopped" | "closed";

/** The delivery of an answer, for metrics and logs. */
export interface Delivery {
  /** Resolves when the answer is sent or has failed. Never rejects. */
  readonly ended: Promise<DeliveryEnd>;
  /** Bytes of the body sent so far, without the framing of chunks. */
  readonly sentBytes: number;
  /** When the client had all that there was, and the body had no more. Default: unknown. */
  readonly waits?: readonly Stretch[];
}
