/** What is known of a piece of work; names are OpenTelemetry's where it has one. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

/** "client" for what is asked of another program or the database. */
export type SpanKind = "internal" | "client";

export interface SpanStart {
  readonly name: string;
  readonly kind?: SpanKind;
  readonly facts?: SpanFacts;
}

/** A piece of work that is under way. */
export interface Span {
  set(facts: SpanFacts): void;
  /** It came to nothing, for a reason of few; an HTTP status of 400 or more says it better. */
  fail(reason: string): void;
  /** Once; with what went wrong, if something did. */
  end(error?: unknown): void;
}

export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/** Spans begun in `work`, and in all that it starts, are below a certain one. */
export type RunBelow = <Value>(work: () => Value) => Value;

/** A piece of work that is done in several steps. */
export interface OpenSpan extends Span {
  /** Below this span. */
  readonly run: RunBelow;
}

/** A request that is traced. */
export type RequestSpan = OpenSpan;

/** What a request brought along. */
export interface HeaderReader {
  get(name: string): string | null;
}

/** Tells pieces of work, each below the one that it is done for. */
export interface Tracer {
  /** Begins a trace, or goes on with the caller's. `undefined` when nobody will look at it. */
  request(
    method: string,
    route: string | undefined,
    headers: HeaderReader,
  ): RequestSpan | undefined;
  /** Runs `work` in a span. Where none is around that is looked at, it just runs it. */
  span<Value>(
    start: SpanStart,
    work: (span: Span) => Promise<Value>,
  ): Promise<Value>;
  /** What is run by the result is below the span that is around now, whoever calls it, and when. */
  here(): RunBelow;
  /** Of the span around the caller. */
  ids(): TraceIds | undefined;
  /** Of the span around: facts that are learned far below where it began. */
  note(facts: SpanFacts): void;
  /** They let another program go on with the trace, below the span around. */
  headers(): Readonly<Record<string, string>>;
}

/** Nobody looks at it. */
export const NO_SPAN: Span = { set() {}, fail() {}, end() {} };

/** Traces nothing. */
export const NO_TRACER: Tracer = {
  request: () => undefined,
  span: (_start, work) => work(NO_SPAN),
  here: () => (work) => work(),
  ids: () => undefined,
  note() {},
  headers: () => ({}),
};

/**
 * The same port, with a span around each call of `methods`, all of which return promises. What is
 * not named is passed on as it is.
 */
export function traced<Port extends object>(
  inner: Port,
  tracer: Tracer,
  methods: Readonly<Partial<Record<keyof Port & string, SpanStart>>>,
): Port {
  const starts = new Map<PropertyKey, SpanStart | undefined>(Object.entries(methods));
  // Each method is made once: a request that nobody traces calls them, too.
  const made = new Map<PropertyKey, unknown>();
  return new Proxy(inner, {
    get(target, key) {
      const known = made.get(key);
      if (known !== undefined) return known;
      const value = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      const start = starts.get(key);
      const method = start === undefined
        ? value.bind(target)
        : (...args: readonly unknown[]) =>
          tracer.span(start, () => Reflect.apply(value, target, args));
      made.set(key, method);
      return method;
    },
  });
}
