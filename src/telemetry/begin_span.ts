import { NO_SPAN, type OpenSpan, type SpanStart, type Tracer } from "./tracer.ts";

/**
 * Begins a child span of the current one, for work in steps that several callers drive, such as a
 * stream. The caller ends it.
 */
export function beginSpan(tracer: Tracer, start: SpanStart): OpenSpan {
  const over = Promise.withResolvers<void>();
  let open: OpenSpan = { ...NO_SPAN, run: (work) => work() };
  tracer.span(start, (span) => {
    open = {
      set: (facts) => span.set(facts),
      fail: (reason) => span.fail(reason),
      end: (error) => error === undefined ? over.resolve() : over.reject(error),
      run: tracer.here(),
    };
    return over.promise;
  }).catch(() => undefined);
  return open;
}
