/** What the app sees of a request. A `Request` is one, too. */
export interface ClientRequest {
  readonly method: string;
  /**
   * Absolute, its path and query as they came: nothing is decoded or resolved. The host is
   * `localhost`, whatever the client calls us.
   */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** What the client speaks, such as "1.1"; `undefined` where nobody knows. */
  readonly httpVersion?: string;
  /** The address of the connection's other end, as `peerAddress` tells it. */
  readonly peer?: string;
  /** `null` where none was announced. What is not read is not waited for. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Aborts when the client leaves before its answer is out. */
  readonly signal: AbortSignal;
}

export interface RequestHeaders {
  /** Several of one name are joined with ", ". The name's case does not matter. */
  get(name: string): string | null;
}

/** All of it was sent, the client left before, or the body broke on our side. */
export type DeliveryEnd = "sent" | "left" | "broken";

/** How the answer to a request fares, for whoever counts and times. */
export interface Delivery {
  /** Resolves when nothing more of it goes out. Never rejects. */
  readonly ended: Promise<DeliveryEnd>;
  /** Bytes of the body that went out so far, without the framing of chunks. */
  readonly sentBytes: number;
}
