import type { Bytes } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { streamOf } from "../../base/stream_of.ts";
import type { DocumentKeeper, DocumentRow } from "../../metadata/metadata_store.ts";
import type { CacheResult } from "../nar/nar_answer.ts";
import type { Pieces } from "./collect_document.ts";

/** The facts of a document before its bytes. */
export interface SentFacts {
  readonly encoding?: string | undefined;
  /** `undefined` while the upstream does not say. */
  readonly bodyBytes: number | undefined;
  /** An entity tag of these very bytes; `undefined` until they are known. */
  readonly tag?: string;
  /** False where the path names the same document for ever. */
  readonly mayChange: boolean;
}

/** A document to send. Dispose of it if `body` was not called. */
export interface SentDocument extends SentFacts, Disposable {
  /** Its bytes, once: in one piece where it is small. */
  body(): Bytes | ReadableStream<Bytes>;
}

/** `document` is `undefined` when neither the cache nor an upstream has it. */
export interface DocumentServed {
  readonly cacheResult: CacheResult;
  readonly document: SentDocument | undefined;
}

const NO_BYTES = new Uint8Array(0);

/** A kept document; `undefined` when it was removed or replaced meanwhile. */
export async function keptDocument(
  metadata: Pick<DocumentKeeper, "documentPiece">,
  row: DocumentRow,
): Promise<SentDocument | undefined> {
  const first = row.bodyBytes === 0 ? NO_BYTES : await metadata.documentPiece(row.id, 0);
  if (first === undefined) return undefined;
  if (first.length === row.bodyBytes) return memoryDocument(row, first);
  return streamedDocument(row, keptPieces(metadata, row, first));
}

/** A document in memory. */
export function memoryDocument(facts: SentFacts, bytes: Bytes): SentDocument {
  return { ...facts, bodyBytes: bytes.length, body: () => bytes, [Symbol.dispose]() {} };
}

/** A document that arrives piece by piece. `over` is called when the stream ends. */
export function streamedDocument(
  facts: SentFacts,
  pieces: Pieces,
  release: () => void = () => undefined,
): SentDocument {
  return { ...facts, body: () => streamOf(pieces, release), [Symbol.dispose]: release };
}

async function* keptPieces(
  metadata: Pick<DocumentKeeper, "documentPiece">,
  { id, bodyBytes, path }: DocumentRow,
  first: Bytes,
): Pieces {
  let piece: Bytes | undefined = first;
  let sent = 0;
  for (let number = 1; piece !== undefined; number++) {
    sent += piece.length;
    yield piece;
    if (sent === bodyBytes) return;
    piece = await metadata.documentPiece(id, number);
  }
  throw new Failure("unavailable", "Cannot read document: it was removed meanwhile", { path });
}
