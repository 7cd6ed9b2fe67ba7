import { boundedBytes } from "../../base/bounded_text.ts";
import { Failure } from "../../base/failure.ts";
import { codecOfMagic, parseContentEncoding } from "../../nix/content_encoding.ts";
import type { DecodeBody } from "../decode_body.ts";
import { readStatus } from "../read_narinfo.ts";
import type { DocumentReading } from "../upstream.ts";
import { discard, readRefusal } from "./failed_reading.ts";

/** Real narinfos have a few KiB; one with 10,000 references has half a MiB. */
const DOCUMENT_BYTES_MAX = 2 << 20;

/**
 * Reads the response to a request for a narinfo or a nix-cache-info, with its body. One that says
 * nothing of its encoding is decoded if it begins as a compressed file does: some caches forget the
 * header.
 */
export async function readSmallDocument(
  response: Response,
  { decode = refuse, upstream }: {
    readonly decode?: DecodeBody | undefined;
    readonly upstream: string;
  },
): Promise<DocumentReading> {
  if (readStatus(response.status) !== "found") return await readRefusal(response);
  const encoding = parseContentEncoding(response.headers.get("content-encoding"));
  if (encoding.kind === "unknown") {
    await discard(response);
    return unknownEncoding(encoding.name);
  }
  let bytes = await boundedBytes(response, { bytesMax: DOCUMENT_BYTES_MAX });
  const codecs = encoding.codecs.length > 0 ? encoding.codecs : codecOfMagic(bytes);
  if (codecs.length > 0) {
    bytes = await decode(bytes, { codecs, upstream, bytesMax: DOCUMENT_BYTES_MAX });
  }
  return { kind: "found", text: TEXT.decode(bytes) };
}

/** The reading of a response whose encoding larder does not know. */
export function unknownEncoding(
  name: string,
): Extract<DocumentReading, { kind: "failed" }> {
  const detail = `Cannot read its Content-Encoding: ${name} is not known`;
  return { kind: "failed", reason: "garbage", detail };
}

const TEXT = new TextDecoder();

function refuse(): Promise<never> {
  throw new Failure("corrupt", "Cannot decode its body here");
}
