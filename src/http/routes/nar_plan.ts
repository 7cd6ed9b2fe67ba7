import type { NarFacts } from "../../cache/nar/nar_answer.ts";
import { type Answer, type AnswerParts, isNamed, notModifiedAnswer, statusAnswer } from "../message/answer.ts";
import type { ClientRequest } from "../message/client_request.ts";
import { withoutBlanks } from "../message/field_words.ts";
import { commandHeaders } from "./request_series.ts";

/** The answer to a NAR request: a finished one, or bytes under a status and headers. */
export type NarPlan =
  | { readonly kind: "answered"; readonly answer: Answer }
  | {
    readonly kind: "bytes";
    readonly parts: AnswerParts;
    readonly start: number;
    /** `undefined` is the file's end. */
    readonly end: number | undefined;
  };

/** The plan for a request's headers and a file's facts; the same for GET and HEAD. */
export function planNar(request: ClientRequest, facts: NarFacts): NarPlan {
  const { fileSize, tag } = facts;
  const headers = { ...headersOf(facts), ...commandHeaders(facts, request) };
  if (tag !== undefined && isNamed(request.headers.get("if-none-match"), `"${tag}"`)) {
    const { status: _, ...parts } = partsOf(304, headers);
    return { kind: "answered", answer: notModifiedAnswer(parts) };
  }
  // Without a known size larder offers no ranges, and may send the whole file.
  if (fileSize === undefined) return bytes(partsOf(200, headers), 0, undefined);
  const range = readRange(wantedRange(request, tag), fileSize);
  switch (range.kind) {
    case "whole":
      headers["content-length"] = String(fileSize);
      return bytes(partsOf(200, headers), 0, fileSize);
    case "part":
      headers["content-length"] = String(range.end - range.start);
      headers["content-range"] = `bytes ${range.start}-${range.end - 1}/${fileSize}`;
      return bytes(partsOf(206, headers), range.start, range.end);
    case "beyond": {
      const refused = { "content-range": `bytes */${fileSize}` };
      const head = request.method === "HEAD";
      return { kind: "answered", answer: statusAnswer(416, head, refused) };
    }
  }
}

/** The Range header, unless If-Range names other bytes. */
function wantedRange(request: ClientRequest, tag: string | undefined): string | null {
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === `"${tag}"` ? request.headers.get("range") : null;
}

function headersOf({ cacheResult, fileSize, tag }: NarFacts): Record<string, string> {
  return {
    "x-cache": cacheResult,
    ...(fileSize === undefined ? {} : { "accept-ranges": "bytes" }),
    ...(tag === undefined ? {} : { etag: `"${tag}"` }),
  };
}

function partsOf(status: number, headers: Readonly<Record<string, string>>): AnswerParts {
  return { status, type: "application/x-nix-nar", lifetime: "immutable", headers };
}

function bytes(parts: AnswerParts, start: number, end: number | undefined): NarPlan {
  return { kind: "bytes", parts, start, end };
}

/** A Range header's meaning for one file: all of it, a part, or a start beyond its end. */
type RangeReading =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly start: number; readonly end: number }
  | { readonly kind: "beyond" };

const RANGE_REGEXP = /^bytes=(?:(\d+)-(\d+)?|-(\d+))$/i;

const WHOLE = { kind: "whole" } as const;

/**
 * Reads a Range header for a file of `fileSize` bytes; `end` is exclusive. A malformed or multiple
 * range means the whole file (RFC 9110, 14.2 allows it).
 */
export function readRange(header: string | null, fileSize: number): RangeReading {
  const match = header === null ? null : RANGE_REGEXP.exec(withoutBlanks(header));
  if (match === null) return WHOLE;
  const [, first, last, suffix] = match;
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), fileSize);
    return length === 0 ? { kind: "beyond" } : part(fileSize - length, fileSize);
  }
  const start = Number(first);
  const end = last === undefined ? fileSize : Math.min(Number(last) + 1, fileSize);
  if (last !== undefined && Number(last) < start) return WHOLE;
  return start >= fileSize ? { kind: "beyond" } : part(start, end);
}

function part(start: number, end: number): RangeReading {
  return { kind: "part", start, end };
}
