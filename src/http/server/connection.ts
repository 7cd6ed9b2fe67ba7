import type { Answer } from "../message/answer.ts";
import type { ClientRequest, Delivery } from "../message/client_request.ts";
import { peerAddress } from "../message/peer.ts";
import { Activity, type Ticks } from "./activity.ts";
import type { BodyReader } from "./body_reader.ts";
import { ReceivedRequest } from "./received_request.ts";
import { RequestReader, type Socket } from "./request_reader.ts";
import { ClientLeft, ResponseWriter } from "./response_writer.ts";
import { Refusal, type TurnedAway } from "./refusal.ts";
import { RequestBody } from "./request_body.ts";
import { parseRequestHead, type RequestHead } from "./request_head.ts";
import { sendAnswer } from "./send_answer.ts";

export interface ConnectionDeps {
  /** Answers a request; never rejects. */
  readonly handle: (request: ClientRequest, delivery: Delivery) => Promise<Answer>;
  /** What a client gets that is turned away. */
  readonly refuse: (turnedAway: TurnedAway) => Answer;
  /** Told of connections that end for what came in on them. */
  readonly refused: (reason: string) => void;
  readonly ticks: Ticks & { readonly date: string };
  /** True once no further request is taken. */
  readonly isStopping: () => boolean;
}

/** What is left of a body after its answer is read up to here, to keep the connection. */
const SKIPPED_BYTES_MAX = 64 * 1024;

/** A refused client that still sends sees the answer if it stops within both limits. */
const LINGER_BYTES_MAX = 256 * 1024 * 1024;
const LINGER_TICKS_MAX = 30;

/** Nobody reads it, so all connections share it. */
const DISCARDED = new Uint8Array(64 * 1024);

/** One client's connection: a request and its answer, one after the other. */
export class Connection {
  readonly activity: Activity;
  readonly #socket: Socket;
  readonly #deps: ConnectionDeps;
  readonly #requestReader: RequestReader;
  readonly #responseWriter: ResponseWriter;
  #request: ReceivedRequest | undefined;
  #hasAsked = false;
  #reader: BodyReader | undefined;
  #writeEnd: Promise<void> | undefined;
  #isClosed = false;

  constructor(socket: Socket, deps: ConnectionDeps) {
    this.#socket = socket;
    this.#deps = deps;
    this.activity = new Activity(deps.ticks);
    this.#requestReader = new RequestReader(socket, this.activity);
    this.#responseWriter = new ResponseWriter(socket, this.activity);
  }

  /** As `peerAddress` tells it. */
  get peer(): string {
    return peerAddress(this.#socket.remoteAddr);
  }

  /** True once a whole request came. */
  get hasAsked(): boolean {
    return this.#hasAsked;
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

  /** Ends it at once, in the middle of whatever it carries. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
    this.#reader?.cancel();
    this.#request?.end("left");
  }

  /** Refuses the request that is half here: sends a status, takes no more, and ends. */
  turnAway(status: number, reason: string): void {
    this.#requestReader.stop();
    const said = this.#say(status, reason);
    // An answer of the app must not follow.
    this.#responseWriter.end();
    said.then(() => this.#endAnswers()).catch(() => this.close());
  }

  /** What a write that is under way holds. */
  get unsentBytes(): number {
    return this.#responseWriter.heldBytes;
  }

  /** While the client takes nothing: keeps as little for it as can be. */
  shed(): void {
    this.#reader?.shed();
  }

  /** While the app is at work: notices a client whose connection broke. What it sends is kept. */
  watch(): void {
    if (!this.#requestReader.isEmpty || this.#request?.hasBody) return;
    // A client that has ended its side may still read.
    this.#requestReader.fill().catch(() => this.close());
  }

  /** Whether another request may follow. */
  async #answerNext(): Promise<boolean> {
    const text = await this.#requestReader.head();
    if (text === undefined) return false;
    this.activity.enter("answering");
    const head = readHead(text);
    this.#hasAsked = true;
    const body = head.bodyLength === 0 ? undefined : this.#bodyOf(head);
    const received = new ReceivedRequest(head, body, this.#socket.remoteAddr);
    this.#request = received;
    const answer = await this.#deps.handle(received, received);
    const keepsAlive = head.keepsAlive && !this.#deps.isStopping() &&
      (body === undefined || await this.#isUsedUp(body, head));
    this.activity.enter("answering");
    await sendAnswer(answer, {
      responseWriter: this.#responseWriter,
      activity: this.activity,
      isHead: head.method === "HEAD",
      keepsAlive,
      isOld: head.isOld,
      date: this.#deps.ticks.date,
      reads: (reader) => void (this.#reader = reader),
      sent: (byteLength) => received.sent(byteLength),
    });
    received.end("sent");
    this.#request = undefined;
    if (!keepsAlive && (body?.isOver === false || !this.#requestReader.isEmpty)) {
      await this.#linger();
    }
    return keepsAlive;
  }

  #bodyOf({ bodyLength, expectsContinue }: RequestHead): RequestBody {
    return new RequestBody(this.#requestReader, bodyLength, async () => {
      if (expectsContinue) await this.#responseWriter.together("HTTP/1.1 100 Continue\r\n\r\n");
    });
  }

  /** A client that was not told to go on sends its next request, or its body: nobody knows. */
  async #isUsedUp(body: RequestBody, { expectsContinue }: RequestHead): Promise<boolean> {
    if (body.isOver) return true;
    if (expectsContinue && !body.hasBegun) return false;
    this.activity.enter("skipping");
    try {
      return await body.skip(SKIPPED_BYTES_MAX);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // The app has done what was asked, and counted its answer: that is what the client gets.
      this.#deps.refused(error.reason);
      return false;
    }
  }

  async #failed(error: unknown): Promise<void> {
    if (this.#requestReader.isStopped) {
      this.#request?.end("left");
      return await this.#linger();
    }
    this.#request?.end(error instanceof ClientLeft ? "left" : "broken");
    // Anything else is a connection that broke, or an answer that did: there is nothing to say.
    if (!(error instanceof Refusal)) return;
    this.#deps.refused(error.reason);
    await this.#say(error.status, error.reason, error.method);
    await this.#linger();
  }

  async #say(status: number, reason: string, method?: string): Promise<void> {
    if (this.activity.phase === "sending") return;
    this.activity.enter("lingering");
    const answer = this.#deps.refuse({
      ...{ status, reason, method },
      peer: this.peer,
      request: this.#request,
    });
    const { date } = this.#deps.ticks;
    await sendAnswer(answer, {
      responseWriter: this.#responseWriter,
      activity: this.activity,
      ...{ isHead: false, keepsAlive: false, isOld: false, date },
      reads: () => {},
      sent: () => {},
    });
  }

  /** A connection that is closed while bytes come in is reset, and the answer with it. */
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
    this.#deps.refused("refused client goes on");
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
