import { withoutBlanks } from "./field_words.ts";

/** A Range header's meaning for one file: all of it, a part, or a start beyond its end. */
export type RangeReading =
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
