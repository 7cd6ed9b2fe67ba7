import { Inbox } from "./inbox.ts";
import { listenOnSteadyPort, writeAll } from "./steady_port.ts";
import type { Bytes } from "../../src/base/bytes.ts";

/** A request of the client, as far as a fault depends on it. */
export interface S3Request {
  readonly method: string;
  /** With its query. */
  readonly path: string;
}

/** The fate of a request. */
export type S3Fault =
  /** This status and error code, and nothing reaches the server. */
  | { readonly status: number; readonly code: string }
  /** The server carries out the request, and the connection ends before its answer. */
  | "lose the answer"
  /** The connection ends after so many bytes of the answer's body. */
  | { readonly cutAfter: number }
  /** Nothing reaches the server before this settles. */
  | { readonly holdUntil: Promise<unknown> }
  /** The answer's body, and its length with it, is another. */
  | { readonly body: (bytes: Bytes) => Bytes };

/** Stands in front of an S3 server and breaks single requests. Signatures stay valid. */
export class S3FaultProxy implements AsyncDisposable {
  /** Called for each request; `undefined`: as usual. */
  fault: (request: S3Request) => S3Fault | undefined = () => undefined;
  readonly #targetPort: number;
  readonly #listener = listenOnSteadyPort();
  readonly #ends = new Set<Deno.Conn>();
  readonly #served = new Set<Promise<void>>();

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const end of this.#ends) this.#close(end);
    await Promise.all(this.#served);
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      this.#ends.add(client);
      const served = this.#serve(client).catch(() => undefined).finally(() => this.#close(client));
      this.#served.add(served);
      served.then(() => this.#served.delete(served));
    }
  }

  /** One request; then the connection ends. */
  async #serve(client: Deno.Conn): Promise<void> {
    const inbox = new Inbox(client, { readsAhead: false });
    const head = await inbox.head();
    if (head === undefined) return;
    const [method = "", path = ""] = head.split(" ");
    const fault = this.fault({ method, path });
    const body = await take(inbox, lengthIn(head));
    if (typeof fault === "object" && "status" in fault) return await refuse(client, fault);
    if (typeof fault === "object" && "holdUntil" in fault) await fault.holdUntil;
    const answer = await this.#forward(head, body);
    if (fault === "lose the answer") return;
    await writeAll(client, changed(answer, fault));
  }

  async #forward(head: string, body: readonly Bytes[]): Promise<Bytes> {
    const target = await Deno.connect({ hostname: "127.0.0.1", port: this.#targetPort });
    this.#ends.add(target);
    try {
      const lines = head.trimEnd().split("\r\n").filter((line) => !/^connection:/i.test(line));
      await writeAll(target, latin1(`${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`));
      for (const piece of body) await writeAll(target, piece);
      return await new Response(target.readable).bytes();
    } finally {
      this.#close(target);
    }
  }

  #close(end: Deno.Conn): void {
    this.#ends.delete(end);
    try {
      end.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }
}

/** The answer as the fault makes it. */
function changed(answer: Bytes, fault: S3Fault | undefined): Bytes {
  if (typeof fault !== "object") return answer;
  const text = new TextDecoder("latin1").decode(answer.subarray(0, 16_384));
  const bodyAt = text.indexOf("\r\n\r\n") + 4;
  if ("cutAfter" in fault) return answer.subarray(0, bodyAt + fault.cutAfter);
  if (!("body" in fault)) return answer;
  const body = fault.body(answer.subarray(bodyAt));
  const head = text.slice(0, bodyAt).replace(
    /content-length: \d+/i,
    `Content-Length: ${body.length}`,
  );
  return join(latin1(head), body);
}

async function refuse(
  client: Deno.Conn,
  { status, code }: { readonly status: number; readonly code: string },
): Promise<void> {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
  const headers = `Content-Type: application/xml\r\nContent-Length: ${body.length}\r\n`;
  await writeAll(
    client,
    latin1(`HTTP/1.1 ${status} X\r\n${headers}Connection: close\r\n\r\n${body}`),
  );
}

async function take(inbox: Inbox, length: number): Promise<readonly Bytes[]> {
  const pieces: Bytes[] = [];
  for (let left = length; left > 0;) {
    const piece = await inbox.some(left);
    if (piece.length === 0) throw new Error("the client has left");
    pieces.push(piece);
    left -= piece.length;
  }
  return pieces;
}

function lengthIn(head: string): number {
  return Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
}

function latin1(text: string): Bytes {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function join(first: Bytes, second: Bytes): Bytes {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}
