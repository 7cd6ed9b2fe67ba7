import type { Bytes } from "../../base/bytes.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { type Stretch, WaitNotes } from "../../base/wait_notes.ts";
import {
  type Answer,
  type ClientRequest,
  type CutShort,
  type Delivery,
  type DeliveryEnd,
  peerAddress,
} from "../message/message.ts";
import { AnswerWriter, ClientLeft, type Progress, type RunningWrites } from "./answer_writer.ts";
import {
  Refusal,
  type RefusedRequest,
  RequestBody,
  type RequestHead,
  RequestReader,
  type Socket,
} from "./request_reader.ts";

/**
 * Retiring: each connection ends after its next answer. Stopping: each one ends after the answer
 * that it is sending, which may have announced more.
 */
export type ServerStage = "serving" | "retiring" | "stopping";

/** The proxies that may name a client's address. */
export interface Proxies {
  trusts(peer: string): boolean;
  /** The client of a request from `peer`. */
  clientOf(peer: string, headers: RequestHeaders): string;
}

export interface ConnectionDeps {
  /** Answers a request; never rejects. */
  readonly handle: (request: ClientRequest, delivery: Delivery) => Promise<Answer>;
  /** The answer to a refused request. */
  readonly refuse: (refused: RefusedRequest) => Answer;
  /** Called with the reason of each refused request. */
  readonly refused: (reason: string) => void;
  readonly ticks: Ticks & { readonly date: string };
  readonly running: RunningWrites;
  /** `undefined`: no proxy is believed. */
  readonly proxies?: Proxies | undefined;
  readonly stage: () => ServerStage;
}

/** Limit of what is read of an unused body after its answer, to keep the connection. */
const SKIPPED_BYTES_MAX = 64 * 1024;

/** A refused client that still sends sees the answer if it stops within both limits. */
const LINGER_BYTES_MAX = 256 * 1024 * 1024;
const LINGER_TICKS_MAX = 30;

/** Nobody reads it, so all connections share it. */
const DISCARDED = new Uint8Array(64 * 1024);

/** One client's connection: requests and answers in turn. */
export class Connection {
  readonly activity: Activity;
  readonly #socket: Socket;
  readonly #deps: ConnectionDeps;
  readonly #requestReader: RequestReader;
  readonly #answerWriter: AnswerWriter;
  readonly #facts: ConnectionFacts;
  #request: ReceivedRequest | undefined;
  #hasRequested = false;
  #writeEnd: Promise<void> | undefined;
  /** Resolves when a stopped client has been told so. */
  #refusing: Promise<void> | undefined;
  #isClosed = false;

  constructor(socket: Socket, deps: ConnectionDeps) {
    this.#socket = socket;
    this.#deps = deps;
    this.activity = new Activity(deps.ticks);
    this.#requestReader = new RequestReader(socket, this.activity);
    this.#answerWriter = new AnswerWriter(socket, this.activity, deps.running);
    this.#facts = {
      remoteAddr: socket.remoteAddr,
      peer: peerAddress(socket.remoteAddr),
      running: deps.running,
      proxies: deps.proxies,
      activity: this.activity,
      giveUpBody: () => this.#giveUpBody(),
    };
  }

  /** Address from `peerAddress`. */
  get peer(): string {
    return this.#facts.peer;
  }

  /** True once a whole request arrived. */
  get hasRequested(): boolean {
    return this.#hasRequested;
  }

  /** Resolves when the connection has ended, for whatever reason. */
  async run(): Promise<void> {
    try {
      while (await this.#answerNext());
    } catch (error) {
      await this.#failed(error).catch(() => undefined);
    } finally {
      this.close();
    }
  }

  /** Ends the connection at once, even in the middle of a body. Default: the client has left. */
  close(why: CutShort = "left"): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
    this.#answerWriter.close();
    this.#request?.end(why);
  }

  /** Refuses an incomplete request: answers with a status, and ends the connection. */
  refuse(status: number, reason: string): void {
    const said = this.#sendRefusal({ status, reason, method: undefined });
    this.#refusing = said.catch(() => undefined);
    this.#requestReader.stop();
    // No answer of the app may follow.
    this.#answerWriter.end();
    said.then(() => this.#endAnswers()).catch(() => this.close());
  }

  #giveUpBody(): void {
    if (this.activity.phase !== "body") return;
    const reason = "slow upload while memory is short";
    this.#deps.refused(reason);
    this.refuse(408, reason);
  }

  /** Memory of what the client has not taken yet. */
  get unsentBytes(): number {
    return this.#answerWriter.unsentBytes;
  }

  /** Frees buffers while the client stalls. */
  shed(): void {
    this.#answerWriter.shed();
  }

  /** Notices a broken connection while the app works. Keeps the bytes that the client sends. */
  watch(): void {
    if (!this.#requestReader.isEmpty || this.#request?.hasUnreadBody) return;
    const request = this.#request;
    this.#requestReader.fill().then(
      // A client that has ended its side may still read.
      (goesOn) => goesOn ? undefined : request?.endSide(),
      () => this.close(),
    );
  }

  /** True if another request may follow. */
  async #answerNext(): Promise<boolean> {
    const head = await this.#requestReader.head();
    if (head === undefined) return false;
    this.activity.enter("answering");
    this.#hasRequested = true;
    const body = head.bodyLength === 0 ? undefined : this.#bodyOf(head);
    const received = new ReceivedRequest(head, body, this.#facts);
    this.#request = received;
    const answer = await this.#deps.handle(received, received);
    const keepsAlive = head.keepsAlive && this.#deps.stage() === "serving" &&
      (body === undefined || await this.#isUsedUp(body, head));
    this.activity.enter("answering");
    const { method, isOld } = head;
    const { date } = this.#deps.ticks;
    const sending = { isHead: method === "HEAD", keepsAlive, isOld, date };
    await this.#answerWriter.send(answer, sending, received);
    received.end("sent");
    this.#request = undefined;
    const goesOn = keepsAlive && this.#deps.stage() !== "stopping";
    if (!goesOn && (body?.isOver === false || !this.#requestReader.isEmpty)) {
      await this.#linger();
    }
    return goesOn;
  }

  #bodyOf({ bodyLength, expectsContinue }: RequestHead): RequestBody {
    return new RequestBody(this.#requestReader, bodyLength, async () => {
      if (expectsContinue) await this.#answerWriter.sendContinue();
    });
  }

  /**
   * False if the next bytes are ambiguous. A client that waits for 100 may send its body, or its
   * next request.
   */
  async #isUsedUp(body: RequestBody, { expectsContinue }: RequestHead): Promise<boolean> {
    if (body.isOver) return true;
    if (expectsContinue && !body.hasBegun) return false;
    this.activity.enter("skipping");
    try {
      return await body.skip(SKIPPED_BYTES_MAX);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // The app has counted its answer, so the client gets that one.
      this.#deps.refused(error.reason);
      return false;
    }
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#requestReader.isStopped) {
      this.#request?.end("left");
      await this.#refusing;
      return await this.#linger();
    }
    this.#request?.end(error instanceof ClientLeft ? "left" : "broken");
    // A broken connection or body: no answer can follow.
    if (!(error instanceof Refusal)) return;
    this.#deps.refused(error.reason);
    await this.#sendRefusal(error);
    await this.#linger();
  }

  async #sendRefusal(
    { status, reason, expected, method }: Omit<RefusedRequest, "peer" | "request">,
  ): Promise<void> {
    if (this.activity.phase === "sending") return;
    this.activity.enter("lingering");
    const answer = this.#deps.refuse({
      ...{ status, reason, expected, method },
      peer: this.peer,
      request: this.#request,
    });
    const { date } = this.#deps.ticks;
    const sending = { isHead: false, keepsAlive: false, isOld: false, date };
    await this.#answerWriter.send(answer, sending);
  }

  /** Closing a connection while bytes arrive resets it, and the client loses the answer. */
  async #linger(): Promise<void> {
    await this.#endAnswers();
    const { ticks } = this.#deps;
    const lastTick = ticks.count + LINGER_TICKS_MAX;
    for (let count = 0; count < LINGER_BYTES_MAX && ticks.count < lastTick;) {
      const read = await this.#socket.read(DISCARDED);
      if (read === null) return;
      count += read;
      this.activity.enter("lingering");
    }
    this.#deps.refused("refused client keeps sending");
  }

  #endAnswers(): Promise<void> {
    this.activity.enter("lingering");
    return this.#writeEnd ??= this.#socket.closeWrite();
  }
}

/** The connection of a request. */
interface ConnectionFacts {
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
class ReceivedRequest implements ClientRequest, Delivery, Progress {
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

/** Counts the sweeps over all connections: a clock without cost for a request. */
export interface Ticks {
  readonly count: number;
}

/** The phase of a connection. */
export type Phase =
  /** No byte of a request has arrived. */
  | "idle"
  | "head"
  | "body"
  /** A body that the app does not need arrives. */
  | "skipping"
  /** The app is at work. */
  | "answering"
  /** A wrong token: the answer waits on purpose. */
  | "held"
  /** The client reads. */
  | "sending"
  /** A refused client still sends. */
  | "lingering";

/** The phase of one connection, and its age. */
export class Activity {
  readonly #ticks: Ticks;
  #phase: Phase = "idle";
  #since: number;

  constructor(ticks: Ticks) {
    this.#ticks = ticks;
    this.#since = ticks.count;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The age of the phase in sweeps. */
  get ticks(): number {
    return this.#ticks.count - this.#since;
  }

  /** Starts the phase again, even the same one. But "skipping" has one limit for its whole body. */
  enter(phase: Phase): void {
    if (this.#phase === "skipping" && phase === "body") return;
    this.#phase = phase;
    this.#since = this.#ticks.count;
  }
}

/** Longest time without progress by phase; `undefined`: no limit. */
export type PhaseLimits = Readonly<Record<Phase, number | undefined>>;

const SECOND_MS = 1_000;

/** Limits in milliseconds. They are no options, as no well-behaved client meets them. */
export const PHASE_LIMITS_MS: PhaseLimits = {
  // As nginx; a client keeps a connection for the next path of a closure.
  idle: 75 * SECOND_MS,
  // From its first byte to its last. A head has a few hundred bytes and leaves in one packet, so a
  // byte a second is no progress.
  head: 20 * SECOND_MS,
  // Between two pieces.
  body: 30 * SECOND_MS,
  // From the first byte to the last: the answer waits for it.
  skipping: 20 * SECOND_MS,
  // The upstreams have timeouts of their own.
  answering: undefined,
  held: undefined,
  // Between two pieces. Nix aborts a transfer that stalls for 300 seconds, and stalls one itself
  // while it unpacks.
  sending: 300 * SECOND_MS,
  // Between two pieces.
  lingering: 5 * SECOND_MS,
};

/** The logged reason for closing a connection without progress. */
export const OVERDUE_REASON: Readonly<Record<Phase, string>> = {
  idle: "no request",
  head: "incomplete request",
  body: "incomplete request body",
  skipping: "incomplete request body",
  answering: "no answer",
  held: "no answer",
  sending: "stalled client",
  lingering: "refused client stays connected",
};
