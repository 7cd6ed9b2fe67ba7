import { STATUS_CODES } from "node:http";
import { writeAll } from "./steady_port.ts";

export type Body = Uint8Array | AsyncIterable<Uint8Array>;

/** An answer as it goes onto the wire, exact to the byte. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** A body that throws `ConnectionCut` ends the connection there. HEAD sends none of it. */
  readonly body: Body;
  /** A Content-Length, chunks, or neither: then the end of the connection ends the body. */
  readonly framing: number | "chunked" | "close";
}

/** Thrown by a body: the connection is closed after the bytes before it. */
export class ConnectionCut extends Error {}

/** "left": the client ended the connection, or the server was stopped, before the end. */
export type Outcome = "sent" | "cut" | "left";

export interface Sending {
  readonly conn: Deno.Conn;
  readonly answer: Answer;
  readonly isHead: boolean;
  readonly keepsAlive: boolean;
  readonly left: Promise<"left">;
  /** Called with the bytes of the body that went into the socket. */
  readonly onSent: (byteLength: number) => void;
}

// Head and body of a small answer leave in one packet.
const TOGETHER_BYTES_MAX = 64 * 1024;
const GONE = [
  Deno.errors.BrokenPipe,
  Deno.errors.ConnectionReset,
  Deno.errors.ConnectionAborted,
  Deno.errors.NotConnected,
  Deno.errors.BadResource,
  Deno.errors.Interrupted,
];

export async function sendAnswer(sending: Sending): Promise<Outcome> {
  try {
    return await send(sending);
  } catch (error) {
    if (error instanceof ConnectionCut) return "cut";
    if (GONE.some((kind) => error instanceof kind)) return "left";
    throw error;
  }
}

async function send({ conn, answer, isHead, keepsAlive, left, onSent }: Sending): Promise<Outcome> {
  const { body, framing, status } = answer;
  const head = headOf(answer, keepsAlive);
  if (isHead || status === 204 || status === 304) {
    await writeAll(conn, head);
    return "sent";
  }
  if (framing === "chunked" || !(body instanceof Uint8Array)) {
    await writeAll(conn, head);
    return await sendPieces({ conn, answer, left, onSent });
  }
  if (body.length <= TOGETHER_BYTES_MAX) {
    await writeAll(conn, join(head, body));
    onSent(body.length);
  } else {
    await writeAll(conn, head);
    await writeAll(conn, body, onSent);
  }
  return framing === "close" || framing === body.length ? "sent" : "cut";
}

async function sendPieces(
  { conn, answer, left, onSent }: Pick<Sending, "conn" | "answer" | "left" | "onSent">,
): Promise<Outcome> {
  const { body, framing } = answer;
  const pieces = body instanceof Uint8Array ? once(body) : body[Symbol.asyncIterator]();
  let sentBytes = 0;
  for (;;) {
    const next = await Promise.race([pieces.next(), left]);
    if (next === "left") {
      // Not awaited: a body that waits for the test might never come back.
      pieces.return?.()?.catch(() => {});
      return "left";
    }
    if (next.done) break;
    if (next.value.length === 0) continue;
    const isChunked = framing === "chunked";
    await writeAll(conn, isChunked ? chunkOf(next.value) : next.value);
    sentBytes += next.value.length;
    onSent(next.value.length);
  }
  if (framing === "chunked") await writeAll(conn, text("0\r\n\r\n"));
  return typeof framing === "number" && framing !== sentBytes ? "cut" : "sent";
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function headOf({ status, headers, framing }: Answer, keepsAlive: boolean): Uint8Array {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (framing === "chunked") lines.push("transfer-encoding: chunked");
  if (typeof framing === "number") lines.push(`content-length: ${framing}`);
  if (!keepsAlive) lines.push("connection: close");
  return text(`${lines.join("\r\n")}\r\n\r\n`);
}

function chunkOf(bytes: Uint8Array): Uint8Array {
  return join(text(`${bytes.length.toString(16)}\r\n`), bytes, text("\r\n"));
}

function text(characters: string): Uint8Array {
  return new TextEncoder().encode(characters);
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
