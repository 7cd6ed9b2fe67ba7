import { ByteBlocks } from "../../base/byte_blocks.ts";
import { Failure } from "../../base/failure.ts";
import type { MemoryShare } from "../../base/memory_allowance.ts";
import type { OpenDocument } from "../../upstream/document_pool.ts";
import type { DocumentRule } from "./document_rules.ts";

export type Pieces = AsyncGenerator<Uint8Array<ArrayBuffer>>;

/** What came of a document that was to be held in memory. */
export type Collected =
  | { readonly kind: "whole"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** It is larger than may be held: all of its pieces, from the first one on. */
  | { readonly kind: "passing"; readonly pieces: Pieces };

/** A client waits so long for its first byte; what is not here by then is passed on. */
const COLLECT_MAX_MS = 10_000;

export interface CollectOptions {
  readonly rule: Pick<DocumentRule, "mayBeLarger">;
  readonly bytesMax: number;
  readonly share: MemoryShare;
  readonly nowMs: () => number;
}

/**
 * Reads a document whole, if it is no larger than `bytesMax`, soon here, and there is memory for
 * it. Throws when it breaks off, and a Failure "corrupt" when it may not be larger and is.
 */
export async function collectDocument(
  document: OpenDocument,
  { rule: { mayBeLarger }, bytesMax, share, nowMs }: CollectOptions,
): Promise<Collected> {
  const untilMs = nowMs() + COLLECT_MAX_MS;
  const blocks = new ByteBlocks();
  let fits = !mayBeLarger || (document.size ?? 0) <= bytesMax;
  while (fits) {
    const { value, done } = await document.pieces.next();
    if (done) return { kind: "whole", bytes: blocks.joined() };
    fits = blocks.byteLength + value.length <= bytesMax && nowMs() < untilMs &&
      share.take(blocks.growthFor(value.length));
    if (fits) blocks.add(value);
    else if (mayBeLarger) return { kind: "passing", pieces: rejoined(blocks, value, document) };
  }
  if (mayBeLarger) return { kind: "passing", pieces: document.pieces };
  const limits = `${bytesMax} bytes or ${COLLECT_MAX_MS} ms`;
  throw new Failure("corrupt", `Cannot read document: it is over ${limits}`);
}

async function* rejoined(
  blocks: ByteBlocks,
  next: Uint8Array<ArrayBuffer>,
  rest: OpenDocument,
): Pieces {
  yield* blocks.drained();
  yield next;
  yield* rest.pieces;
}
