import type { Tracer } from "../../telemetry/tracer.ts";
import { requestFacts } from "../../upstream/traced_narinfo_source.ts";
import type { NarFetcher } from "./nar_fetcher.ts";

/** A span for each source that a NAR file is asked of. */
export function tracedFetcher(inner: NarFetcher, tracer: Tracer): NarFetcher {
  return {
    begin(order, listener) {
      const fetch = inner.begin(order, listener);
      return {
        from: (source) =>
          tracer.span({
            name: "GET nar",
            kind: "client",
            facts: requestFacts(source.upstream, source.location),
          }, async (span) => {
            const outcome = await fetch.from(source);
            span.set({ "larder.upstream.result": outcome.type });
            if (outcome.type === "failed") span.set({ "error.type": outcome.reason });
            else if (outcome.type === "end") {
              span.set({ "http.response.body.size": outcome.fileSize });
            }
            return outcome;
          }),
        [Symbol.dispose]: () => fetch[Symbol.dispose](),
      };
    },
  };
}
