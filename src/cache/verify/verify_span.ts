import { beginSpan, type OpenSpan, type Tracer } from "../../telemetry/tracer.ts";

/** Begins the span from the start of hashing a NAR to the check result. The caller ends it. */
export function verifySpan(
  tracer: Tracer,
  { compression }: { readonly compression: string },
): OpenSpan {
  return beginSpan(tracer, {
    name: "verify nar",
    facts: { "larder.nar.compression": compression },
  });
}
