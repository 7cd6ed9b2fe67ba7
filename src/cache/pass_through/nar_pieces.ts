import type { NarRow, NarSource } from "../../metadata/metadata_store.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";

/** What is wanted of a NAR file that is passed on without being kept. */
export interface PiecesOrder {
  readonly nar: NarRow;
  /** The first byte that is wanted: those before it came already. */
  readonly position: number;
  /** Of the whole file, where the narinfo says so, or whoever sent what came already. */
  readonly fileSize: number | undefined;
  readonly signal: AbortSignal;
}

/** What a source gives: it has answered, once and first; then bytes. */
export type PieceEvent =
  | { readonly type: "opened"; readonly fileSize?: number }
  | { readonly type: "bytes"; readonly bytes: Uint8Array<ArrayBuffer> };

export type PieceEvents = AsyncGenerator<PieceEvent, SourceOutcome>;

/** Has the pieces of NAR files from upstreams. */
export interface NarPieces {
  /** Ends with what became of the source. Never throws; returning early ends the request. */
  from(source: NarSource, order: PiecesOrder): PieceEvents;
}

/** Of a request that whoever reads it has ended. */
export const GIVEN_UP: SourceOutcome = {
  type: "failed",
  reason: "cancelled",
  detail: "nobody wants it any more",
};
