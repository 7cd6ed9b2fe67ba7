import { STATUS_CODES } from "node:http";
import type { Series } from "../telemetry/metrics.ts";
import { CACHE_CONTROL, type Lifetime } from "./cache_control.ts";

export type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

export interface AnswerParts {
  readonly status: number;
  readonly type: string;
  readonly lifetime: Lifetime;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response whose body is one text. */
export class TextAnswer extends Response {
  readonly #text: string;

  constructor(text: string, init: ResponseInit) {
    super(text, init);
    this.#text = text;
  }

  /** Of the body. */
  get bodyBytes(): number {
    return new TextEncoder().encode(this.#text).length;
  }
}

/** What is to know of a body that is sent in pieces. */
export interface Sending {
  /** Bytes that were taken from it. */
  bytes(): number;
  /** Whether all of it was taken; "broken" when it ended early because of us. */
  end(): "open" | "whole" | "broken";
}

/** A response whose body takes its time. */
export class StreamAnswer extends Response {
  readonly sending: Sending;
  /** Where its bytes are counted. */
  readonly served: Series | undefined;

  constructor(body: Body, init: ResponseInit, { sending, served }: StreamParts) {
    super(body, init);
    this.sending = sending;
    this.served = served;
  }
}

export interface StreamParts {
  readonly sending: Sending;
  readonly served?: Series;
}

/** A response with a text body; without the body, but with its length, for HEAD. */
export function textAnswer(text: string, head: boolean, parts: AnswerParts): Response {
  if (!head) return new TextAnswer(text, initOf(parts));
  const length = new TextEncoder().encode(text).length;
  return headAnswer({ ...parts, headers: { ...parts.headers, "content-length": String(length) } });
}

/** A response with a body that takes its time. */
export function streamAnswer(body: Body, parts: AnswerParts, stream: StreamParts): Response {
  return new StreamAnswer(body, initOf(parts), stream);
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
