import { STATUS_CODES } from "node:http";
import { CACHE_CONTROL, type Lifetime } from "./cache_control.ts";

export type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

export interface AnswerParts {
  readonly status: number;
  readonly type: string;
  readonly lifetime: Lifetime;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response with a text body; without the body, but with its length, for HEAD. */
export function textAnswer(text: string, head: boolean, parts: AnswerParts): Response {
  if (!head) return new Response(text, initOf(parts));
  const length = new TextEncoder().encode(text).length;
  return headAnswer({ ...parts, headers: { ...parts.headers, "content-length": String(length) } });
}

/** A response with a body. */
export function bodyAnswer(body: Body, parts: AnswerParts): Response {
  return new Response(body, initOf(parts));
}

/** The answer to HEAD: all that the answer with a body would say of it. */
export function headAnswer(parts: AnswerParts): Response {
  // Deno.serve adds this one wherever there is a body.
  const headers = { ...parts.headers, vary: "Accept-Encoding" };
  return new Response(null, initOf({ ...parts, headers }));
}

/** 304: the client has it. */
export function notModifiedAnswer(parts: Omit<AnswerParts, "status">): Response {
  return new Response(null, initOf({ ...parts, status: 304 }));
}

/** The status phrase in one plain line: an error body tells nothing else. */
export function statusAnswer(
  status: number,
  head: boolean,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const text = `${STATUS_CODES[status] ?? "Error"}\n`;
  return textAnswer(text, head, { status, type: "text/plain", lifetime: "never", headers });
}

function initOf({ status, type, lifetime, headers }: AnswerParts): ResponseInit {
  return {
    status,
    headers: { "content-type": type, "cache-control": CACHE_CONTROL[lifetime], ...headers },
  };
}
