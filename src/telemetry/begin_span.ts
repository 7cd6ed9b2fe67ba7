import { NO_SPAN, type OpenSpan, type SpanStart, type Tracer } from "./tracer.ts";

/**
 * Begins a span below the one around, for work that is done a step at a time: a stream's, say,
 * whose next bytes are asked for by somebody else. It lasts until it is ended.
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
