import { within } from "../../base/deadline.ts";
import { messageOf } from "../../base/failure.ts";
import { PieceReader } from "../../base/piece_reader.ts";
import type { NarSource } from "../../metadata/metadata_store.ts";
import type { NarBody, NarBodySource } from "../../upstream/upstream.ts";
import { announcedFileSize, fileSizeLimit, hasKnownFileHash } from "../nar_naming.ts";
import { FetchError, fetchFailureOf } from "../fetch/fetch_error.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";
import { GIVEN_UP, type NarPieces, type PieceEvents, type PiecesOrder } from "./nar_pieces.ts";

export interface UpstreamPiecesDeps {
  /** By the upstream's URL. */
  readonly narSources: ReadonlyMap<string, Pick<NarBodySource, "openNar">>;
  /** Longest silence within a body. */
  readonly idleTimeoutMs: number;
}

const END_WAIT_MS = 1_000;

/** The pieces as upstreams send them: they are for a hash to judge. */
export class UpstreamPieces implements NarPieces {
  readonly #deps: UpstreamPiecesDeps;

  constructor(deps: UpstreamPiecesDeps) {
    this.#deps = deps;
  }

  async *from(source: NarSource, order: PiecesOrder): PieceEvents {
    const { narSources, idleTimeoutMs } = this.#deps;
    const { position: offset, signal } = order;
    let requests = 0;
    const asked = () => void requests++;
    try {
      const request = { offset, signal, asked, isFinal: offset > 0 };
      const answer = await narSources.get(source.upstream)?.openNar(source.location, request);
      if (answer === undefined) return { type: "absent" };
      return yield* piecesOf(answer, order, idleTimeoutMs);
    } catch (error) {
      if (signal.aborted) return GIVEN_UP;
      const reason = fetchFailureOf(error);
      return { type: "failed", reason, detail: messageOf(error), requests };
    }
  }
}

/** Throws when the answer is not (the rest of) the file. */
async function* piecesOf(answer: NarBody, order: PiecesOrder, idleTimeoutMs: number): PieceEvents {
  const { nar, position } = order;
  const { body, offset } = answer;
  const reader = new PieceReader(body);
  try {
    checkAnswer(answer, order);
    const fileSize = order.fileSize ?? answer.fileSize;
    yield { type: "opened", ...(fileSize === undefined ? {} : { fileSize }) };
    const end = fileSize ?? fileSizeLimit(nar);
    let at = offset;
    for (;;) {
      const piece = await next(reader, { isWhole: at === fileSize, idleTimeoutMs });
      if (piece === undefined) break;
      const surplus = at + piece.length > end;
      if (surplus && (fileSize === undefined || !hasKnownFileHash(nar))) {
        throw new FetchError("size", `it is over ${end} bytes`);
      }
      // A hash judges what was announced: what is sent behind it is not read.
      const bytes = piece.subarray(Math.max(0, position - at), Math.max(0, end - at));
      at += piece.length;
      if (bytes.length > 0) yield { type: "bytes", bytes };
      if (surplus) return ended(end, true);
    }
    if (at < (fileSize ?? 0)) throw new FetchError("upstream", `got ${at} of ${fileSize} bytes`);
    return ended(at, false);
  } finally {
    await reader.cancel();
  }
}

function checkAnswer(
  { fileSize, offset }: NarBody,
  { nar, position, fileSize: expected }: PiecesOrder,
): void {
  const announced = announcedFileSize(nar);
  if (fileSize !== undefined && fileSize !== (announced ?? fileSize)) {
    throw new FetchError("size", `it announces ${fileSize} bytes, not ${announced}`);
  }
  if (fileSize !== undefined && fileSize !== (expected ?? fileSize)) {
    throw new FetchError("differs", `it announces ${fileSize} bytes, not ${expected}`);
  }
  if (offset > position) {
    throw new FetchError("upstream", `it begins at byte ${offset}, not ${position}`);
  }
}

interface Waiting {
  /** All bytes are here: how the body ends is of no interest, only whether more follow. */
  readonly isWhole: boolean;
  readonly idleTimeoutMs: number;
}

/** `undefined` at the body's end. Throws when it breaks. */
async function next(
  reader: PieceReader,
  { isWhole, idleTimeoutMs }: Waiting,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const waitMs = isWhole ? Math.min(END_WAIT_MS, idleTimeoutMs) : idleTimeoutMs;
  try {
    const result = await within(reader.read().then((piece) => ({ piece })), waitMs);
    if (result === undefined) throw new FetchError("stalled", `nothing came for ${waitMs} ms`);
    return result.piece;
  } catch (error) {
    if (isWhole) return undefined;
    throw error;
  }
}

function ended(fileSize: number, surplus: boolean): SourceOutcome {
  return { type: "end", fileSize, ...(surplus ? { surplus } : {}) };
}
