import { Inbox } from "./inbox.ts";
import { listenAgain, listenOnSteadyPort } from "./steady_port.ts";
import { type Answer, type Outcome, sendAnswer } from "./wire_answer.ts";

/** A request as it stood on the wire, and how its answer went. */
export interface Exchange {
  readonly method: string;
  /** Path and query as sent, nothing decoded or normalised. */
  readonly path: string;
  readonly headers: Headers;
  /** Bytes of the answer's body that went into the socket so far. */
  readonly sentBytes: number;
  /** Resolves when the answer has ended, one way or another. */
  readonly finished: Promise<Outcome>;
}

/** Instead of an answer: the connection is closed without a byte. */
export const DROP = "drop";

export type Handler = (exchange: Exchange) => Promise<Answer | typeof DROP>;

/**
 * An HTTP/1.1 server whose answers are exact to the byte, broken ones too. (`Deno.serve` drops
 * unflushed bytes when a body fails, so it cannot cut after n bytes.) It can be closed at any time,
 * whatever the clients do.
 */
export class ExactServer implements AsyncDisposable {
  readonly port: number;
  readonly #handler: Handler;
  readonly #connections = new Map<Deno.Conn, Promise<void>>();
  readonly #mistakes: unknown[] = [];
  #listener: Deno.TcpListener | undefined;
  #accepting: Promise<void>;

  constructor(handler: Handler) {
    this.#handler = handler;
    this.#listener = listenOnSteadyPort();
    this.port = this.#listener.addr.port;
    this.#accepting = this.#accept(this.#listener);
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  /**
   * Refuses connections and breaks the open ones, until `start`. A write that a client keeps
   * waiting cannot be called off: that client still gets its bytes, and then the end.
   */
  async stop(): Promise<void> {
    this.#listener?.close();
    this.#listener = undefined;
    await this.#accepting;
    for (const conn of this.#connections.keys()) close(conn);
  }

  /** Listens again on the same port. */
  async start(): Promise<void> {
    if (this.#listener !== undefined) return;
    this.#listener = await listenAgain(this.port);
    this.#accepting = this.#accept(this.#listener);
  }

  /**
   * Waits until clients that do not read have left, so close them first. Throws the first
   * error that the handler threw: a mistake of the test.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Promise.all(this.#connections.values());
    if (this.#mistakes.length > 0) throw this.#mistakes[0];
  }

  async #accept(listener: Deno.TcpListener): Promise<void> {
    for await (const conn of listener) {
      conn.setNoDelay(true);
      const served = this.#serve(conn).finally(() => this.#connections.delete(conn));
      this.#connections.set(conn, served);
    }
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    const inbox = new Inbox(conn, { readsAhead: true });
    for (;;) {
      const exchange = ServedExchange.read(await inbox.head());
      if (exchange === undefined) break;
      const outcome = await this.#answer({ conn, inbox, exchange });
      exchange.finish(outcome);
      if (outcome !== "sent" || !exchange.keepsAlive) break;
    }
    close(conn);
    await inbox.idle();
  }

  async #answer({ conn, inbox, exchange }: Turn): Promise<Outcome> {
    const left = inbox.left.then(() => "left" as const);
    try {
      const answer = await Promise.race([this.#handler(exchange), left]);
      if (answer === "left") return "left";
      if (answer === DROP) return "cut";
      if (answer.framing === "close") exchange.keepsAlive = false;
      return await sendAnswer({
        conn,
        answer,
        left,
        isHead: exchange.method === "HEAD",
        keepsAlive: exchange.keepsAlive,
        onSent: (byteLength) => exchange.sentBytes += byteLength,
      });
    } catch (error) {
      this.#mistakes.push(error);
      return "cut";
    }
  }
}

interface Turn {
  readonly conn: Deno.Conn;
  readonly inbox: Inbox;
  readonly exchange: ServedExchange;
}

class ServedExchange implements Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers = new Headers();
  readonly #finished = Promise.withResolvers<Outcome>();
  sentBytes = 0;
  keepsAlive: boolean;

  private constructor(requestLine: readonly string[], headerLines: readonly string[]) {
    const [method = "", path = "", version = ""] = requestLine;
    this.method = method;
    this.path = path;
    for (const line of headerLines) {
      const colon = line.indexOf(":");
      this.headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    const { headers } = this;
    const hasBody = headers.has("transfer-encoding") || Number(headers.get("content-length")) > 0;
    const wantsClose = headers.get("connection")?.toLowerCase() === "close";
    // Nobody reads a request's body here, so no request can follow one.
    this.keepsAlive = version === "HTTP/1.1" && !hasBody && !wantsClose;
  }

  /** `undefined` when there is no request that could be answered. */
  static read(head: string | undefined): ServedExchange | undefined {
    const [line, ...headerLines] = head?.trimEnd().split("\r\n") ?? [];
    const words = line?.split(" ") ?? [];
    return words.length === 3 ? new ServedExchange(words, headerLines) : undefined;
  }

  get finished(): Promise<Outcome> {
    return this.#finished.promise;
  }

  finish(outcome: Outcome): void {
    this.#finished.resolve(outcome);
  }
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
