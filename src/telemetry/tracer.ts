import { type Around, around } from "../base/around.ts";
import type { RequestHeaders } from "../base/request_headers.ts";

/** Attributes of a span, named as in OpenTelemetry where possible. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

/** "client": a request to another program, or a query of the database. */
export type SpanKind = "internal" | "client";

export interface SpanStart {
  readonly name: string;
  readonly kind?: SpanKind;
  readonly facts?: SpanFacts;
}

/** A running span. */
export interface Span {
  set(facts: SpanFacts): void;
  /**
   * Marks the span as failed. `reason` is one of few; an HTTP status of 400 or more says it better.
   */
  fail(reason: string): void;
  /** Ends the span. Call it once, with the error if there is one. */
  end(error?: unknown): void;
}

export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/** Runs `work` with a certain span as the parent of its spans. */
export type RunBelow = <Value>(work: () => Value) => Value;

/** A span for work in several steps. */
export interface OpenSpan extends Span {
  /** Runs work below this span. */
  readonly run: RunBelow;
}

/** The span of a traced request. */
export type RequestSpan = OpenSpan;

/** Traces work in spans, each below the span of its caller. */
export interface Tracer {
  /** Begins a trace, or continues the caller's. `undefined` if it is not sampled. */
  request(
    method: string,
    route: string | undefined,
    headers: RequestHeaders,
  ): RequestSpan | undefined;
  /** Runs `work` in a span. Without a sampled parent it only runs it. */
  span<Value>(
    start: SpanStart,
    work: (span: Span) => Promise<Value>,
  ): Promise<Value>;
  /** Captures the current span, as the parent of work that the result runs later. */
  here(): RunBelow;
  /** The ids of the current span. */
  ids(): TraceIds | undefined;
  /** Adds facts to the current span, from code far below the one that began it. */
  note(facts: SpanFacts): void;
  /** Headers with which another program continues the trace. */
  headers(): Readonly<Record<string, string>>;
}

/** A span that records nothing. */
export const NO_SPAN: Span = { set() {}, fail() {}, end() {} };

/** A tracer that records nothing. */
export const NO_TRACER: Tracer = {
  request: () => undefined,
  span: (_start, work) => work(NO_SPAN),
  here: () => (work) => work(),
  ids: () => undefined,
  note() {},
  headers: () => ({}),
};

/**
 * The port with a span around each call of `methods`, all of which return promises. Other members
 * stay as they are.
 */
export function traced<Port extends object>(
  inner: Port,
  tracer: Tracer,
  methods: Readonly<Partial<Record<keyof Port & string, SpanStart>>>,
): Port {
  const spans = Object.entries<SpanStart | undefined>(methods).map(([method, start]) => {
    const inSpan: Around = (call) => start ? tracer.span(start, call) : call();
    return [method, inSpan];
  });
  return around<Port>(inner, Object.fromEntries(spans));
}

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
