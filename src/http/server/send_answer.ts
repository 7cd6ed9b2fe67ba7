import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import type { Bytes } from "../../base/bytes.ts";
import { clock } from "../../runtime/current.ts";
import { type Answer, statusAnswer } from "../message/answer.ts";
import type { Activity } from "./activity.ts";
import type { AnswerWriter } from "./answer_writer.ts";
import { BodyReader } from "./body_reader.ts";

export interface Sending {
  readonly answerWriter: AnswerWriter;
  readonly activity: Activity;
  readonly isHead: boolean;
  readonly keepsAlive: boolean;
  readonly isOld: boolean;
  /** Date in HTTP's format. */
  readonly date: string;
  /**
   * Called with the reader of a running body, which ends with the connection; then with
   * `undefined`.
   */
  readonly reads: (reader: BodyReader | undefined) => void;
  readonly sent: (byteLength: number) => void;
  /** Called with each time in which a running body had nothing to send. */
  readonly waited: (fromMs: number, toMs: number) => void;
}

type Framing = number | "chunked" | "none";

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([code, phrase]) => [
    Number(code),
    `HTTP/1.1 ${code} ${phrase}\r\n`,
  ]),
);

/** Bodies may be untrusted text: browsers must not guess their type. */
const NO_SNIFFING = "x-content-type-options: nosniff\r\n";

const ENCODER = new TextEncoder();

/** The body is not the announced one. Its connection must not look complete. */
class BrokenBody extends Error {
  override readonly name = "BrokenBody";
}

/** Sends an answer. Throws if the client left, or the body is not as announced. */
export async function sendAnswer(answer: Answer, sending: Sending): Promise<void> {
  const { body, headers } = answer;
  if (sending.isHead || body === null) {
    if (body instanceof ReadableStream) await body.cancel();
    const framing = framingWithoutBody(answer, sending.isHead);
    return await sending.answerWriter.together(headOf(answer, sending, framing));
  }
  const announced = headers.get("content-length");
  const length = announced === null ? undefined : Number(announced);
  if (body instanceof ReadableStream) return await sendStream(answer, sending, { body, length });
  const head = (byteLength: number) => headOf(answer, sending, byteLength);
  if (typeof body === "string" && length === undefined) {
    return sending.sent(await sending.answerWriter.text(body, head));
  }
  const bytes = typeof body === "string" ? ENCODER.encode(body) : body;
  if (length !== undefined && length !== bytes.length) throw new BrokenBody("another length");
  await sending.answerWriter.together(head(bytes.length), bytes);
  sending.sent(bytes.length);
}

/** The framing that GET would have: chunks, if its length is unknown. */
function framingWithoutBody({ status, body }: Answer, isHead: boolean): Framing {
  if (status === 204 || status === 304) return "none";
  if (typeof body === "string") return Buffer.byteLength(body);
  if (body instanceof Uint8Array) return body.length;
  return isHead ? "chunked" : 0;
}

interface StreamedBody {
  readonly body: ReadableStream<Bytes>;
  /** `undefined`: unknown. */
  readonly length: number | undefined;
}

async function sendStream(
  answer: Answer,
  sending: Sending,
  { body, length }: StreamedBody,
): Promise<void> {
  const { answerWriter, isOld } = sending;
  using reader = new BodyReader(body);
  // Without chunks a client could not tell this body's end from a break.
  if (length === undefined && isOld) return await sendUnframed(answer, sending);
  sending.reads(reader);
  try {
    await answerWriter.together(headOf(answer, sending, length ?? "chunked"));
    if (length === undefined) return await sendChunks(reader, sending);
    await sendLength(reader, sending, length);
  } finally {
    sending.reads(undefined);
  }
}

/** The length of the next piece; 0 at the end. */
async function nextOf(reader: BodyReader, { activity, waited }: Sending): Promise<number> {
  // The client is not stalled while there is nothing to send.
  activity.enter("answering");
  const fromMs = clock.nowMs();
  const length = await reader.next();
  waited(fromMs, clock.nowMs());
  return length;
}

async function sendChunks(reader: BodyReader, sending: Sending): Promise<void> {
  const { answerWriter, sent } = sending;
  for (;;) {
    const length = await nextOf(reader, sending);
    if (length === 0) return await answerWriter.together("0\r\n\r\n");
    await answerWriter.together(`${length.toString(16)}\r\n`);
    await answerWriter.bytes(reader.piece);
    await answerWriter.together("\r\n");
    sent(length);
  }
}

async function sendLength(reader: BodyReader, sending: Sending, length: number): Promise<void> {
  const { answerWriter, sent } = sending;
  // This frame waits as long as the client, so it must not refer to a piece.
  const write = (bytes: Uint8Array) => answerWriter.some(bytes);
  for (let left = length;;) {
    const pieceLength = await nextOf(reader, sending);
    if (pieceLength > left) throw new BrokenBody("longer than announced");
    if (pieceLength === 0 && left > 0) throw new BrokenBody("shorter than announced");
    if (pieceLength === 0) return;
    while (reader.piece.length > 0) {
      const written = await reader.write(write, answerWriter.savesMemory);
      left -= written;
      sent(written);
    }
  }
}

/** Answers 404, so that an HTTP/1.0 client tries its next cache: it cannot read chunks. */
async function sendUnframed({ headers }: Answer, sending: Sending): Promise<void> {
  const kept = ["x-cache", "x-request-id"].flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  await sendAnswer(statusAnswer(404, false, Object.fromEntries(kept)), sending);
}

/** The head of an answer, with its empty line. `framing`: of a body without a Content-Length. */
function headOf({ status, headers }: Answer, sending: Sending, framing: Framing): string {
  const { keepsAlive, isOld, date } = sending;
  let text = STATUS_LINES.get(status) ?? `HTTP/1.1 ${status} \r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  if (!headers.has("content-length")) text += framingField(framing);
  if (!keepsAlive) text += "connection: close\r\n";
  // HTTP/1.0: a connection stays open only if the head says so.
  else if (isOld) text += "connection: keep-alive\r\n";
  return `${text}${NO_SNIFFING}date: ${date}\r\n\r\n`;
}

function framingField(framing: Framing): string {
  if (framing === "none") return "";
  return framing === "chunked"
    ? "transfer-encoding: chunked\r\n"
    : `content-length: ${framing}\r\n`;
}
