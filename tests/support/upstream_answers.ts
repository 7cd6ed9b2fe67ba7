import type { ContentEncoding, DialectRow, NarFile } from "./dialects.ts";
import { narFileOf } from "./nar_files.ts";
import type { StoreObject } from "./store_object.ts";
import type { Answer } from "./wire_answer.ts";

const NO_BYTES = new Uint8Array(0);

export function textAnswer(status: number, text: string, contentType = "text/plain"): Answer {
  const body = new TextEncoder().encode(text);
  const headers = new Headers({ "content-type": contentType });
  return { status, headers, body, framing: body.length };
}

/** A test's own `Response` as it goes over the wire; chunked unless it says its length. */
export function responseAnswer({ status, headers: given, body }: Response): Answer {
  const headers = new Headers(given);
  const length = headers.get("content-length");
  headers.delete("content-length");
  if (length !== null) return { status, headers, body: body ?? NO_BYTES, framing: Number(length) };
  if (body === null) return { status, headers, body: NO_BYTES, framing: 0 };
  return { status, headers, body, framing: "chunked" };
}

export interface NarRequest {
  readonly headers: Headers;
  readonly row: DialectRow;
  readonly hasRanges: boolean;
  readonly object: StoreObject;
  readonly file: NarFile;
}

/** The NAR file: whole, a range of it, or with a Content-Encoding where the dialect does so. */
export async function narAnswer(request: NarRequest): Promise<Answer> {
  const { row, file, hasRanges, object } = request;
  const headers = new Headers({ "content-type": row.narType });
  if (hasRanges) headers.set("accept-ranges", "bytes");
  if (row.encodings.length > 0) headers.set("vary", "accept-encoding");
  const range = hasRanges ? request.headers.get("range") : null;
  if (range !== null) return rangeAnswer(range, { headers, bytes: file.bytes });
  const encoding = chosenEncoding(row.encodings, request.headers.get("accept-encoding") ?? "");
  if (encoding !== undefined) {
    headers.set("content-encoding", encoding);
    const { bytes } = await narFileOf(object.nar, { compression: encoding });
    return { status: 200, headers, body: bytes, framing: "chunked" };
  }
  const framing = row.hasLength ? file.bytes.length : "chunked";
  return { status: 200, headers, body: file.bytes, framing };
}

interface Ranged {
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

function rangeAnswer(range: string, { headers, bytes }: Ranged): Answer {
  const whole = { status: 200, headers, body: bytes, framing: bytes.length };
  const [match, first = "", last = ""] = /^bytes=([0-9]*)-([0-9]*)$/.exec(range) ?? [];
  if (match === undefined || first + last === "") return whole;
  const isSuffix = first === "";
  const start = isSuffix ? Math.max(0, bytes.length - Number(last)) : Number(first);
  const end = isSuffix || last === "" ? bytes.length : Math.min(Number(last) + 1, bytes.length);
  if (start >= bytes.length) {
    headers.set("content-range", `bytes */${bytes.length}`);
    return { status: 416, headers, body: NO_BYTES, framing: 0 };
  }
  if (start >= end) return whole;
  headers.set("content-range", `bytes ${start}-${end - 1}/${bytes.length}`);
  return { status: 206, headers, body: bytes.subarray(start, end), framing: end - start };
}

function chosenEncoding(
  known: readonly ContentEncoding[],
  acceptEncoding: string,
): ContentEncoding | undefined {
  const accepted = acceptEncoding.split(",")
    .map((word) => word.trim().toLowerCase())
    .filter((word) => !/;\s*q=0(\.0*)?$/.test(word))
    .map((word) => word.replace(/\s*;.*$/, ""));
  return known.find((encoding) => accepted.includes(encoding));
}
