import type { Answer } from "../message/answer.ts";
import type { ClientRequest, CutShort, Delivery } from "../message/client_request.ts";
import { peerAddress } from "../message/peer.ts";
import { Activity, type Ticks } from "./activity.ts";
import type { BodyReader } from "./body_reader.ts";
import {
  type ConnectionFacts,
  type Proxies,
  ReceivedRequest,
  RequestBody,
} from "./received_request.ts";
import { RequestReader, type Socket } from "./request_reader.ts";
import { AnswerWriter, ClientLeft, type RunningWrites } from "./answer_writer.ts";
import { Refusal, type RefusedRequest } from "./refusal.ts";
import { parseRequestHead, type RequestHead } from "./request_head.ts";
import { sendAnswer } from "./send_answer.ts";

/**
 * Retiring: each connection ends after its next answer. Stopping: each one ends after the answer
 * that it is sending, which may have announced more.
 */
export type ServerStage = "serving" | "retiring" | "stopping";

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
  #reader: BodyReader | undefined;
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
    this.#reader?.cancel();
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

  /** Memory of the running write, of the bytes behind it, and of those that its body holds. */
  get unsentBytes(): number {
    return this.#answerWriter.heldBytes + (this.#reader?.heldBytes ?? 0);
  }

  /** Frees buffers while the client stalls. */
  shed(): void {
    this.#reader?.shed();
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
    const text = await this.#requestReader.head();
    if (text === undefined) return false;
    this.activity.enter("answering");
    const head = readHead(text);
    this.#hasRequested = true;
    const body = head.bodyLength === 0 ? undefined : this.#bodyOf(head);
    const received = new ReceivedRequest(head, body, this.#facts);
    this.#request = received;
    const answer = await this.#deps.handle(received, received);
    const keepsAlive = head.keepsAlive && this.#deps.stage() === "serving" &&
      (body === undefined || await this.#isUsedUp(body, head));
    this.activity.enter("answering");
    await sendAnswer(answer, {
      answerWriter: this.#answerWriter,
      activity: this.activity,
      isHead: head.method === "HEAD",
      keepsAlive,
      isOld: head.isOld,
      date: this.#deps.ticks.date,
      reads: (reader) => void (this.#reader = reader),
      sent: (byteLength) => received.sent(byteLength),
      waited: (fromMs, toMs) => received.waited(fromMs, toMs),
    });
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
      if (expectsContinue) await this.#answerWriter.together("HTTP/1.1 100 Continue\r\n\r\n");
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
    await sendAnswer(answer, {
      answerWriter: this.#answerWriter,
      activity: this.activity,
      ...{ isHead: false, keepsAlive: false, isOld: false, date },
      reads: () => {},
      sent: () => {},
      waited: () => {},
    });
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

function readHead(text: string): RequestHead {
  try {
    return parseRequestHead(text);
  } catch (error) {
    throw error instanceof Refusal ? error.in(text) : error;
  }
}
