import type { Bytes } from "../../src/base/bytes.ts";
import { Inbox } from "./inbox.ts";
import { writeAll } from "./steady_port.ts";

/** An answer as it came over the wire. */
export interface RawAnswer {
  /** 0: the connection ended before a whole head. */
  readonly status: number;
  readonly headers: Headers;
  readonly body: Bytes;
  /** Whether Content-Length or the last chunk says that the body is whole. */
  readonly complete: boolean;
  /** Heads of 1xx that came before, e.g. 100. */
  readonly interim: readonly number[];
}

export interface RawOptions {
  /** Leave as soon as that many bytes of the body are there. */
  readonly stopAfterBodyBytes?: number;
}

/** The text of a request that ends its connection. Nothing in `path` is normalised. */
export function requestText(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const all = { "Host": "127.0.0.1", "Connection": "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Sends these bytes to a port of 127.0.0.1, reads one answer and leaves. */
export async function rawRequest(
  port: number,
  request: string | Uint8Array,
  { stopAfterBodyBytes = Infinity }: RawOptions = {},
): Promise<RawAnswer> {
  return await rawExchange(await RawConnection.open(port), request, { stopAfterBodyBytes });
}

/** Sends these bytes on a new connection, reads one answer and leaves. */
export async function rawExchange(
  opened: RawConnection,
  request: string | Uint8Array,
  { stopAfterBodyBytes = Infinity }: RawOptions = {},
): Promise<RawAnswer> {
  await using connection = opened;
  await connection.send(request);
  const isHead = typeof request === "string" && request.startsWith("HEAD ");
  const { status, headers, interim, reader } = await connection.answer({ isHead });
  const body = await reader.read(stopAfterBodyBytes);
  return { status, headers, interim, body, complete: reader.isComplete };
}

/** The part of a connection that a client uses. */
type ClientSocket = Pick<Deno.Conn, "read" | "write" | "closeWrite" | "close">;

/** The head of an answer, and its body to be read as slowly as the test likes. */
export interface RawHead extends Omit<RawAnswer, "body" | "complete"> {
  readonly reader: RawBody;
}

/** A connection on which the test decides about every byte, for several answers if it likes. */
export class RawConnection implements AsyncDisposable {
  readonly #conn: ClientSocket;
  readonly #inbox: Inbox;

  constructor(conn: ClientSocket) {
    this.#conn = conn;
    this.#inbox = new Inbox(conn, { readsAhead: false });
  }

  static async open(port: number): Promise<RawConnection> {
    return new RawConnection(await Deno.connect({ hostname: "127.0.0.1", port }));
  }

  /** Text is sent as Latin-1, byte for character. Throws when the server has closed. */
  async send(bytes: string | Uint8Array): Promise<void> {
    await writeAll(this.#conn, typeof bytes === "string" ? latin1(bytes) : bytes);
  }

  /** Says that nothing more is sent; answers can still come. */
  async closeWrite(): Promise<void> {
    await this.#conn.closeWrite();
  }

  /** Reads the next head. `isHead`: no body follows, whatever the headers say. */
  async answer({ isHead = false }: { readonly isHead?: boolean } = {}): Promise<RawHead> {
    const interim: number[] = [];
    for (;;) {
      const { status, headers } = readHead(await this.#inbox.head() ?? "");
      if (status < 100 || status > 199) {
        const hasNoBody = isHead || status === 204 || status === 304;
        const framing = status === 0 ? undefined : hasNoBody ? 0 : framingOf(headers);
        return { status, headers, interim, reader: new RawBody(this.#inbox, framing) };
      }
      interim.push(status);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#conn.close();
    await this.#inbox.idle();
  }
}

type Framing = number | "chunked" | "close";

/** A body that is taken off the wire only as it is read. */
export class RawBody {
  readonly #inbox: Inbox;
  readonly #isChunked: boolean;
  /** Of the body, or of the chunk that is being read. */
  #leftBytes: number;
  #isComplete: boolean;

  /** `undefined`: there was not even a head. */
  constructor(inbox: Inbox, framing: Framing | undefined) {
    this.#inbox = inbox;
    this.#isChunked = framing === "chunked";
    this.#leftBytes = typeof framing === "number" ? framing : framing === "close" ? Infinity : 0;
    this.#isComplete = framing === 0;
  }

  /** Whether Content-Length or the last chunk says that all of it was read. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The next `byteLength` bytes; fewer only when the body or the connection has ended. */
  async read(byteLength = Infinity): Promise<Bytes> {
    const parts: Bytes[] = [];
    for (let wanted = byteLength; wanted > 0 && !this.#isComplete;) {
      if (this.#leftBytes === 0 && !await this.#nextChunk()) break;
      const part = await this.#inbox.some(Math.min(wanted, this.#leftBytes));
      if (part.length === 0) break;
      parts.push(part);
      wanted -= part.length;
      this.#leftBytes -= part.length;
      if (this.#leftBytes === 0) await this.#endOfPart();
    }
    return await new Blob(parts).bytes();
  }

  async #endOfPart(): Promise<void> {
    if (this.#isChunked) await this.#inbox.line();
    else this.#isComplete = true;
  }

  /** Whether there is one more. */
  async #nextChunk(): Promise<boolean> {
    if (!this.#isChunked) return false;
    const length = parseInt(await this.#inbox.line(), 16);
    if (length > 0) this.#leftBytes = length;
    if (length === 0) this.#isComplete = await this.#inbox.line() === "\r\n";
    return length > 0;
  }
}

function readHead(head: string): Pick<RawAnswer, "status" | "headers"> {
  const [statusLine = "", ...lines] = head.trimEnd().split("\r\n");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { status: Number(/^HTTP\/1\.[01] ([0-9]{3})/.exec(statusLine)?.[1] ?? 0), headers };
}

function framingOf(headers: Headers): Framing {
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked") return "chunked";
  const length = headers.get("content-length");
  return length === null ? "close" : Number(length);
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
