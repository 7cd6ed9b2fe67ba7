import { STATUS_CODES } from "node:http";
import type { Answer } from "../message/answer.ts";

export interface HeadParts {
  /** The framing of a body without a Content-Length header. */
  readonly framing: number | "chunked" | "none";
  readonly keepsAlive: boolean;
  /** HTTP/1.0: a connection stays open only if the head says so. */
  readonly isOld: boolean;
  /** Date in HTTP's format. */
  readonly date: string;
}

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([code, phrase]) => [
    Number(code),
    `HTTP/1.1 ${code} ${phrase}\r\n`,
  ]),
);

/** Bodies may be untrusted text: browsers must not guess their type. */
const NO_SNIFFING = "x-content-type-options: nosniff\r\n";

/** The head of an answer, with its empty line. */
export function formatAnswerHead({ status, headers }: Answer, parts: HeadParts): string {
  const { framing, keepsAlive, isOld, date } = parts;
  let text = STATUS_LINES.get(status) ?? `HTTP/1.1 ${status} \r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  if (!headers.has("content-length")) text += framingField(framing);
  if (!keepsAlive) text += "connection: close\r\n";
  else if (isOld) text += "connection: keep-alive\r\n";
  return `${text}${NO_SNIFFING}date: ${date}\r\n\r\n`;
}

function framingField(framing: HeadParts["framing"]): string {
  if (framing === "none") return "";
  return framing === "chunked"
    ? "transfer-encoding: chunked\r\n"
    : `content-length: ${framing}\r\n`;
}
