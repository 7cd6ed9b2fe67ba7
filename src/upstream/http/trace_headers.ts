/** The `traceparent` of whoever asks now; `undefined`: none is sent. */
export type Traceparent = () => string | undefined;

/** The header that lets an upstream go on with a trace; none where `traceparent` has none. */
export function traceHeaders(traceparent?: Traceparent): Readonly<Record<string, string>> {
  const value = traceparent?.();
  return value === undefined ? {} : { traceparent: value };
}
