import type { Bytes } from "../../base/bytes.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { type Stretch, WaitNotes } from "../../base/wait_notes.ts";
import type { ClientRequest, Delivery, DeliveryEnd } from "../message/client_request.ts";
import type { Activity } from "./activity.ts";
import type { RequestBody } from "./request_body.ts";
import type { RequestHead } from "./request_head.ts";
import type { RunningWrites } from "./answer_writer.ts";

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
