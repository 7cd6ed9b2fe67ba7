import type { NarSource } from "../../metadata/metadata_store.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { resultOf } from "../fetch/metered_fetcher.ts";
import type { SourceOutcome } from "../fetch/nar_fetcher.ts";
import { GIVEN_UP, type NarPieces, type PieceEvents, type PiecesOrder } from "./nar_pieces.ts";

/** Times the NAR requests to upstreams, and counts the bytes that come in, as for kept NARs. */
export function meteredPieces(inner: NarPieces, metrics: Metrics): NarPieces {
  const received = metrics.series("upstream_bytes_total", {});
  return {
    async *from(source: NarSource, order: PiecesOrder): PieceEvents {
      const { upstream } = source;
      const startedAtMs = performance.now();
      const events = inner.from(source, order);
      let outcome: SourceOutcome = GIVEN_UP;
      try {
        for (;;) {
          const { value, done } = await events.next();
          if (done) return outcome = value;
          if (value.type === "bytes") received.add(value.bytes.length);
          yield value;
        }
      } finally {
        await events.return(outcome);
        metrics.histogram("upstream_request_duration_seconds", {
          upstream,
          result: resultOf(outcome),
        }).observe((performance.now() - startedAtMs) / 1_000);
      }
    },
  };
}
