import { createHash } from "node:crypto";
import type { Bytes } from "../../base/bytes.ts";

/** The bytes of a row: a slow reader holds one piece in memory. */
const PIECE_BYTES = 256 * 1024;

const TAG_CHARS = 32;

/** Share of `--cache-max-size` for documents, beside the NAR files. */
const PART_OF_LIMIT = 1 / 20;

/** The limit of all documents together; `Infinity`: none. */
export function documentBytesMax(limitBytes: number): number {
  return limitBytes === Infinity ? Infinity : Math.floor(limitBytes * PART_OF_LIMIT);
}

/** An entity tag of these very bytes. */
export function documentTag(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, TAG_CHARS);
}

/** The pieces in which a document is stored. */
export function documentPieces(
  bytes: Bytes,
): readonly Bytes[] {
  const count = Math.ceil(bytes.length / PIECE_BYTES);
  return Array.from(
    { length: count },
    (_, at) => bytes.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES),
  );
}
