import type { RequestHeaders } from "../../base/request_headers.ts";
import { fieldWords, lowerAscii, withoutBlanks } from "../message/field_words.ts";
import { Refusal } from "./refusal.ts";

/** A request without its body. */
export interface RequestHead {
  readonly method: string;
  /** Like `ClientRequest.url`. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** Bytes of the body. */
  readonly bodyLength: number | "chunked";
  /** True when the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** False: the connection ends with the answer. */
  readonly keepsAlive: boolean;
  /** HTTP/1.0 has no chunks, and closes connections unless the head says otherwise. */
  readonly isOld: boolean;
}

const REQUEST_LINE_REGEXP = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP\/1\.[01]$/;
const URL_REGEXP = /^https?:\/\/[^/?#]+(?:\/|$)/;
/** A value has no control characters. A folded line, or a space before the colon, is no field. */
const FIELD_REGEXP = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\u0080-\uffff]*$/;
const HOST_CHARS_REGEXP = /^[A-Za-z0-9._~:[\]%-]*$/;
const LENGTH_REGEXP = /^\d{1,15}$/;

/**
 * Parses a head with its empty line. Throws a Refusal for all that two servers could read
 * differently: that is how requests are smuggled (RFC 9112, 11.2).
 */
export function parseRequestHead(text: string): RequestHead {
  const firstEnd = text.indexOf("\r\n");
  const line = text.slice(0, firstEnd);
  if (!REQUEST_LINE_REGEXP.test(line)) throw new Refusal(400, "invalid request line");
  const methodEnd = line.indexOf(" ");
  const method = line.slice(0, methodEnd);
  const target = line.slice(methodEnd + 1, -" HTTP/1.1".length);
  const isPath = target.startsWith("/");
  if (!isPath && !URL_REGEXP.test(target)) throw new Refusal(400, "invalid request target");
  const fields = new HeaderFields();
  const emptyLine = text.length - 2;
  for (let at = firstEnd + 2; at < emptyLine;) {
    const end = text.indexOf("\r\n", at);
    fields.add(text.slice(at, end));
    at = end + 2;
  }
  const host = fields.get("host");
  const isOld = line.endsWith("0");
  if (host === null ? !isOld : !HOST_CHARS_REGEXP.test(host)) {
    throw new Refusal(400, "invalid host");
  }
  return {
    method,
    url: isPath ? target : pathOfUrl(target),
    headers: fields,
    bodyLength: bodyLengthOf(method, fields, isOld),
    expectsContinue: expectsContinue(fields, isOld),
    keepsAlive: keepsAlive(fields.get("connection"), isOld),
    isOld,
  };
}

/** The path of an absolute URL, which clients send to proxies. */
function pathOfUrl(target: string): string {
  const path = target.indexOf("/", target.indexOf("://") + 3);
  return path < 0 ? "/" : target.slice(path);
}

/** True if this beginning of a first line may become a valid request line. */
export function mayBeRequestLine(line: string): boolean {
  if (line.endsWith("\r\n")) return REQUEST_LINE_REGEXP.test(line.slice(0, -2));
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]*(?: [!-~]*(?: [HTP/1.0]*\r?)?)?$/.test(line);
}

/** True for a line that is a header or trailer field. */
export function isField(line: string): boolean {
  return FIELD_REGEXP.test(line);
}

class HeaderFields implements RequestHeaders {
  readonly #values = new Map<string, string>();

  add(line: string): void {
    if (!isField(line)) throw new Refusal(400, "malformed header");
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = withoutBlanks(line, colon + 1);
    const before = this.#values.get(name);
    this.#values.set(name, before === undefined ? value : `${before}, ${value}`);
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }
}

function bodyLengthOf(
  method: string,
  fields: RequestHeaders,
  isOld: boolean,
): RequestHead["bodyLength"] {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding === null && length === null) return 0;
  if (coding !== null) {
    if (length !== null) throw new Refusal(400, "conflicting body lengths");
    if (isOld || lowerAscii(coding) !== "chunked") {
      throw new Refusal(400, "unknown transfer coding");
    }
  } else if (/^\d{16,}$/.test(length ?? "")) {
    throw new Refusal(413, "body too large");
  } else if (!LENGTH_REGEXP.test(length ?? "")) {
    throw new Refusal(400, "invalid content length");
  }
  const bodyLength = coding === null ? Number(length) : "chunked";
  if (bodyLength !== 0 && (method === "GET" || method === "HEAD")) {
    throw new Refusal(400, "unexpected body");
  }
  return bodyLength;
}

function expectsContinue(fields: RequestHeaders, isOld: boolean): boolean {
  const expected = fields.get("expect");
  if (expected === null || isOld) return false;
  if (lowerAscii(expected) !== "100-continue") throw new Refusal(417, "unknown expectation");
  return true;
}

function keepsAlive(connection: string | null, isOld: boolean): boolean {
  if (connection === null) return !isOld;
  const options = fieldWords(connection);
  return isOld ? options.includes("keep-alive") : !options.includes("close");
}
