import type { NarSource } from "../../metadata/metadata_store.ts";
import { beginSpan } from "../../telemetry/begin_span.ts";
import { stepsBelow } from "../../telemetry/steps_below.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";
import { GIVEN_UP, type NarPieces, type PieceEvents, type PiecesOrder } from "./nar_pieces.ts";
import { sourceSpan, tellOutcome } from "../fetch/traced_fetcher.ts";

/** A span for each source that a NAR file is asked of, up to its last piece. */
export function tracedPieces(inner: NarPieces, tracer: Tracer): NarPieces {
  return {
    async *from(source: NarSource, order: PiecesOrder): PieceEvents {
      const span = beginSpan(tracer, sourceSpan(source));
      let outcome: SourceOutcome = GIVEN_UP;
      try {
        return outcome = yield* stepsBelow(span.run, inner.from(source, order), GIVEN_UP);
      } finally {
        tellOutcome(span, outcome);
        span.end();
      }
    },
  };
}
