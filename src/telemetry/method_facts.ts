import type { SpanFacts } from "./tracer.ts";

/** The methods that OpenTelemetry calls known: those of RFC 9110, and PATCH. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"],
]);

/** Methods are untrusted: larder cuts longer ones. */
const ORIGINAL_CHARS_MAX = 32;

/** The attributes of a request's method. An unknown one has an attribute of its own. */
export function methodFacts(method: string): SpanFacts {
  if (KNOWN_METHODS.has(method)) return { "http.request.method": method };
  return {
    "http.request.method": "_OTHER",
    "http.request.method_original": method.slice(0, ORIGINAL_CHARS_MAX),
  };
}

/** The name of a request's span, from a closed set: clients must not invent names. */
export function serverSpanName(method: string, route: string | undefined): string {
  const shownMethod = KNOWN_METHODS.has(method) ? method : "HTTP";
  return route === undefined ? shownMethod : `${shownMethod} ${route}`;
}
