import type { Tracer } from "../../telemetry/tracer.ts";
import type { NarMeasure, NarVerifier } from "./nar_verifier.ts";

/** A span for each NAR that is decompressed and hashed, from its start to its measure. */
export function tracedVerifier(inner: NarVerifier, tracer: Tracer): NarVerifier {
  return {
    start(order) {
      const verification = inner.start(order);
      const { compression } = order;
      const facts = { "larder.nar.compression": compression };
      const ended = Promise.withResolvers<NarMeasure | undefined>();
      // One that is ended early has no measure, and nothing went wrong.
      tracer.span({ name: "verify nar", facts }, (span) =>
        ended.promise.then((measure) => {
          if (measure?.kind === "measured") span.set({ "larder.nar.size": measure.narSize });
          else if (measure !== undefined) span.fail(measure.kind);
        }));
      verification.measure.then(ended.resolve, () => ended.resolve(undefined));
      return {
        measure: verification.measure,
        grown: (fileSize, whole) => verification.grown(fileSize, whole),
        [Symbol.dispose]() {
          ended.resolve(undefined);
          verification[Symbol.dispose]();
        },
      };
    },
  };
}
