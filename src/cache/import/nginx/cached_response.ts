/** A response as nginx keeps it in a file of `proxy_cache`. */
export interface CachedResponse {
  /** `proxy_cache_key`, as it was for the request. */
  readonly key: string;
  readonly status: number;
  /** Lower case; the last of several equal names. */
  readonly headers: ReadonlyMap<string, string>;
  /** Offset of the body in the file. */
  readonly bodyStart: number;
}

/** The part of a file that has the key and the headers: nginx writes it from one buffer. */
export const HEAD_BYTES_MAX = 64 * 1024;

/** Mark of the key behind nginx's own record, whose size differs from platform to platform. */
const KEY_MARK = "\nKEY: ";
const STATUS_REGEXP = /^HTTP\/1\.[01] (\d{3})(?: |$)/;

/** Reads the first bytes of a file. `undefined` for anything but a file of `proxy_cache`. */
export function readCachedResponse(head: Uint8Array): CachedResponse | undefined {
  // One character for each byte, so that positions are those of the file.
  const text = new TextDecoder("latin1").decode(head);
  const keyStart = text.indexOf(KEY_MARK);
  const keyEnd = text.indexOf("\n", keyStart + KEY_MARK.length);
  const headersEnd = text.indexOf("\r\n\r\n", keyEnd);
  if (keyStart < 0 || keyEnd < 0 || headersEnd < 0) return undefined;
  const [statusLine = "", ...lines] = text.slice(keyEnd + 1, headersEnd).split("\r\n");
  const status = STATUS_REGEXP.exec(statusLine)?.[1];
  if (status === undefined) return undefined;
  return {
    key: text.slice(keyStart + KEY_MARK.length, keyEnd),
    status: Number(status),
    headers: new Map(lines.flatMap(headerOf)),
    bodyStart: headersEnd + "\r\n\r\n".length,
  };
}

function headerOf(line: string): readonly (readonly [string, string])[] {
  const colon = line.indexOf(":");
  return colon < 1 ? [] : [[line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]];
}
