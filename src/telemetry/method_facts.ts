import type { SpanFacts } from "./tracer.ts";

/** Those of RFC 9110, and PATCH: what OpenTelemetry calls the known ones. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"],
]);

/** A longer one is cut: it is a stranger's text. */
const ORIGINAL_CHARS_MAX = 32;

/** The attributes of a request's method; one that is not known has a place of its own. */
export function methodFacts(method: string): SpanFacts {
  if (KNOWN_METHODS.has(method)) return { "http.request.method": method };
  return {
    "http.request.method": "_OTHER",
    "http.request.method_original": method.slice(0, ORIGINAL_CHARS_MAX),
  };
}

/** The name of a request's span: clients cannot make up any, or there would be too many. */
export function serverSpanName(method: string, route: string | undefined): string {
  const word = KNOWN_METHODS.has(method) ? method : "HTTP";
  return route === undefined ? word : `${word} ${route}`;
}
