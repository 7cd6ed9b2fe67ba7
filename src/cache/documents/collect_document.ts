import { ByteBlocks } from "../../base/byte_blocks.ts";
import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { formatBytes, formatMs } from "../../base/format_units.ts";
import type { MemoryShare } from "../../base/memory_allowance.ts";
import type { OpenDocument } from "../../upstream/document_pool.ts";
import type { DocumentRule } from "./document_rules.ts";

export type Pieces = AsyncGenerator<Bytes>;

/** The result of reading a document into memory. */
export type Collected =
  | { readonly kind: "whole"; readonly bytes: Bytes }
  /** All pieces of a document that is too large or too slow for memory, from the first one on. */
  | { readonly kind: "streamed"; readonly pieces: Pieces };

/** The longest wait of a client for its first byte; a slower document passes through. */
const COLLECT_MAX_MS = 10_000;

export interface CollectDocumentOptions {
  readonly rule: Pick<DocumentRule, "mayBeLarger">;
  readonly bytesMax: number;
  readonly share: MemoryShare;
  readonly nowMs: () => number;
}

/**
 * Reads a whole document, if it is within `bytesMax`, quick, and fits in memory. Throws when it
 * breaks off, and a Failure "corrupt" when it is larger than its kind may be.
 */
export async function collectDocument(
  document: OpenDocument,
  { rule: { mayBeLarger }, bytesMax, share, nowMs }: CollectDocumentOptions,
): Promise<Collected> {
  const untilMs = nowMs() + COLLECT_MAX_MS;
  const blocks = new ByteBlocks();
  let fits = !mayBeLarger || (document.bodyBytes ?? 0) <= bytesMax;
  while (fits) {
    const { value, done } = await document.pieces.next();
    if (done) return { kind: "whole", bytes: blocks.joined() };
    fits = blocks.byteLength + value.length <= bytesMax && nowMs() < untilMs &&
      share.take(blocks.growthFor(value.length));
    if (fits) blocks.add(value);
    else if (mayBeLarger) return { kind: "streamed", pieces: rejoined(blocks, value, document) };
  }
  if (mayBeLarger) return { kind: "streamed", pieces: document.pieces };
  const limits = `${formatBytes(bytesMax)} or ${formatMs(COLLECT_MAX_MS)}`;
  throw new Failure("corrupt", `Cannot read document: it is over ${limits}`);
}

async function* rejoined(
  blocks: ByteBlocks,
  next: Bytes,
  rest: OpenDocument,
): Pieces {
  yield* blocks.drained();
  yield next;
  yield* rest.pieces;
}
