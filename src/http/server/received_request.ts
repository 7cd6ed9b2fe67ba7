import type { Bytes } from "../../base/bytes.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { streamFrom } from "../../base/stream_of.ts";
import { type Stretch, WaitNotes } from "../../base/wait_notes.ts";
import type { ClientRequest, Delivery, DeliveryEnd } from "../message/client_request.ts";
import type { Activity } from "./activity.ts";
import type { RunningWrites } from "./answer_writer.ts";
import { Refusal } from "./refusal.ts";
import { isField, type RequestHead } from "./request_head.ts";
import type { RequestReader } from "./request_reader.ts";

/** The proxies that may name a client's address. */
export interface Proxies {
  trusts(peer: string): boolean;
  /** The client of a request from `peer`. */
  clientOf(peer: string, headers: RequestHeaders): string;
}

/** The connection of a request. */
export interface ConnectionFacts {
  /** Address of the peer; with `viaProxy`, a proxy announced it. */
  readonly remoteAddr: Deno.Addr;
  /** Its `peerAddress`. */
  readonly peer: string;
  readonly running: Pick<RunningWrites, "holdMuch">;
  readonly proxies: Proxies | undefined;
  readonly activity: Pick<Activity, "enter">;
  /** Refuses the client that the server waits for. */
  readonly giveUpBody: () => void;
}

/** A request for the app, and the delivery of its answer. */
export class ReceivedRequest implements ClientRequest, Delivery {
  readonly #head: RequestHead;
  readonly #incoming: RequestBody | undefined;
  readonly #connection: ConnectionFacts;
  #body: ReadableStream<Bytes> | undefined;
  #abort: AbortController | undefined;
  #hangUp: AbortController | undefined;
  #hasEndedSide = false;
  #ended: PromiseWithResolvers<DeliveryEnd> | undefined;
  #end: DeliveryEnd | undefined;
  #sentBytes = 0;
  #waits: WaitNotes | undefined;

  /** `incoming`: the body, if the head announces one. */
  constructor(head: RequestHead, incoming: RequestBody | undefined, connection: ConnectionFacts) {
    this.#head = head;
    this.#incoming = incoming;
    this.#connection = connection;
  }

  get method(): string {
    return this.#head.method;
  }

  get url(): string {
    return this.#head.url;
  }

  get headers(): RequestHeaders {
    return this.#head.headers;
  }

  get httpVersion(): string {
    return this.#head.isOld ? "1.0" : "1.1";
  }

  get peer(): string {
    const { peer, proxies } = this.#connection;
    return proxies?.clientOf(peer, this.headers) ?? peer;
  }

  get viaProxy(): boolean {
    return "viaProxy" in this.#connection.remoteAddr;
  }

  get ofTrustedProxy(): boolean {
    const { peer, proxies } = this.#connection;
    return !this.viaProxy && proxies !== undefined && proxies.trusts(peer);
  }

  get savesMemory(): boolean {
    return this.#connection.running.holdMuch;
  }

  heldBack(): void {
    this.#connection.activity.enter("held");
  }

  giveUpBody(): void {
    this.#connection.giveUpBody();
  }

  /** True while bytes of the body may come. */
  get hasUnreadBody(): boolean {
    return this.#incoming?.isOver === false;
  }

  get body(): ReadableStream<Bytes> | null {
    if (this.#incoming === undefined) return null;
    return this.#body ??= this.#incoming.stream();
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isCutShort) this.#abort.abort();
    return this.#abort.signal;
  }

  get hungUp(): AbortSignal {
    this.#hangUp ??= new AbortController();
    if (this.#isCutShort || this.#hasEndedSide) this.#hangUp.abort();
    return this.#hangUp.signal;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  get ended(): Promise<DeliveryEnd> {
    this.#ended ??= Promise.withResolvers();
    if (this.#end !== undefined) this.#ended.resolve(this.#end);
    return this.#ended.promise;
  }

  get waits(): readonly Stretch[] {
    return this.#waits?.stretches ?? [];
  }

  /** The body had nothing to send. */
  waited(fromMs: number, toMs: number): void {
    if (toMs > fromMs) (this.#waits ??= new WaitNotes()).add(fromMs, toMs);
  }

  sent(byteLength: number): void {
    this.#sentBytes += byteLength;
  }

  /** The client has ended its side. */
  endSide(): void {
    this.#hasEndedSide = true;
    this.#hangUp?.abort();
  }

  get #isCutShort(): boolean {
    return this.#end !== undefined && this.#end !== "sent" && this.#end !== "broken";
  }

  /** Ends the delivery. Only the first call counts. */
  end(how: DeliveryEnd): void {
    if (this.#end !== undefined) return;
    this.#end = how;
    if (this.#isCutShort) {
      this.#abort?.abort();
      this.#hangUp?.abort();
    }
    this.#ended?.resolve(how);
  }
}

const CHUNK_LINE_REGEXP = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t -~]*)?$/;
const CHUNK_LINE_LENGTH_MAX = 256;
const TRAILER_LENGTH_MAX = 1024;
const TRAILERS_MAX = 16;

/** The body of a request, read from the connection on demand. */
export class RequestBody {
  readonly #requestReader: RequestReader;
  readonly #isChunked: boolean;
  /** Called before the first read, for clients that wait for 100 Continue. */
  readonly #begin: () => Promise<void>;
  /** Bytes left of the body, or of the present chunk. */
  #left: number;
  #isOver: boolean;
  #hasBegun = false;

  constructor(
    requestReader: RequestReader,
    length: number | "chunked",
    begin: () => Promise<void>,
  ) {
    this.#requestReader = requestReader;
    this.#isChunked = length === "chunked";
    this.#left = length === "chunked" ? 0 : length;
    this.#isOver = length === 0;
    this.#begin = begin;
  }

  /** True if the connection's next byte is behind this body. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True once the app has read from it. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Discards the rest, up to `bytesMax`; false if there is more. */
  async skip(bytesMax: number): Promise<boolean> {
    for (let skipped = 0; !this.#isOver && skipped <= bytesMax;) {
      skipped += (await this.read())?.length ?? 0;
    }
    return this.#isOver;
  }

  /** The next bytes; `undefined` at the end. Throws a Refusal for bad framing. */
  async read(): Promise<Bytes | undefined> {
    if (this.#isOver) return undefined;
    if (!this.#hasBegun) await this.#begin();
    this.#hasBegun = true;
    if (this.#left === 0 && !await this.#nextChunk()) return undefined;
    const bytes = await this.#requestReader.some(this.#left);
    this.#left -= bytes.length;
    if (this.#left === 0) await this.#endOfPart();
    return bytes;
  }

  stream(): ReadableStream<Bytes> {
    return streamFrom({
      next: async () => {
        const bytes = await this.read();
        // From here on the client waits for the app, not the app for the client.
        this.#requestReader.handedOver();
        return bytes;
      },
    });
  }

  async #endOfPart(): Promise<void> {
    if (!this.#isChunked) this.#isOver = true;
    else if (await this.#requestReader.line(0) !== "") {
      throw new Refusal(400, "chunk longer than its size");
    }
  }

  /** False after the last chunk. */
  async #nextChunk(): Promise<boolean> {
    const line = await this.#requestReader.line(CHUNK_LINE_LENGTH_MAX);
    const [, size] = CHUNK_LINE_REGEXP.exec(line) ?? [];
    if (size === undefined) throw new Refusal(400, "invalid chunk size");
    this.#left = parseInt(size, 16);
    if (this.#left > 0) return true;
    await this.#skipTrailers();
    this.#isOver = true;
    return false;
  }

  /** Discards trailers. Another server could read a malformed one as the next request. */
  async #skipTrailers(): Promise<void> {
    for (let count = 0;; count++) {
      const line = await this.#requestReader.line(TRAILER_LENGTH_MAX);
      if (line === "") return;
      if (!isField(line)) throw new Refusal(400, "malformed trailer");
      if (count >= TRAILERS_MAX) throw new Refusal(400, "too many trailers");
    }
  }
}
