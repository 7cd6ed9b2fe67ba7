import { Failure } from "../base/failure.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type NarBody, type NarBodySource, NoAnswer } from "./upstream.ts";

type Result = "found" | "absent" | "timeout" | "unreachable" | "status" | "broken" | "cancelled";

/** Times the NAR requests of an upstream by what came of them, and counts the bytes received. */
export function meteredNarSource(inner: NarBodySource, metrics: Metrics): NarBodySource {
  const { url: upstream } = inner;
  const bytes = metrics.series("upstream_bytes_total", {});
  return {
    url: upstream,
    statNar: (location) => inner.statNar(location),
    async openNar(location, offset, signal, ifTag) {
      const startedAtMs = performance.now();
      const over = (result: Result) =>
        metrics.histogram("upstream_request_duration_seconds", { upstream, result })
          .observe((performance.now() - startedAtMs) / 1_000);
      try {
        const found = await inner.openNar(location, offset, signal, ifTag);
        if (found === undefined) over("absent");
        return found && { ...found, body: watched(found.body, bytes.add, over) };
      } catch (error) {
        over(signal.aborted ? "cancelled" : reasonOf(error));
        throw error;
      }
    },
  };
}

function reasonOf(error: unknown): Result {
  if (error instanceof NoAnswer) return error.reason;
  return error instanceof Failure ? "status" : "broken";
}

/** The same bytes; told of each piece, and once of how it ended. */
function watched(
  body: NarBody["body"],
  received: (byteLength: number) => void,
  over: (result: Result) => void,
): NarBody["body"] {
  const reader = body.getReader();
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      try {
        const { value, done } = await reader.read();
        if (done) {
          over("found");
          controller.close();
          // Somebody who waits with a buffer of his own is told by this.
          controller.byobRequest?.respond(0);
          return;
        }
        received(value.length);
        controller.enqueue(value);
      } catch (error) {
        over("broken");
        throw error;
      }
    },
    async cancel(reason) {
      over("cancelled");
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
