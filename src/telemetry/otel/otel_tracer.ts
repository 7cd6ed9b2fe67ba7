import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelTracerApi,
  type TraceState,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  type IdGenerator,
  RandomIdGenerator,
  type ReadableSpan,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { AsyncLocalStorage } from "node:async_hooks";
import { Failure, messageOf } from "../../base/failure.ts";
import type { RequestHeaders } from "../../base/request_headers.ts";
import { clock, dice } from "../../runtime/current.ts";
import {
  NO_SPAN,
  type RequestSpan,
  type RunBelow,
  serverSpanName,
  type Span,
  type SpanFacts,
  type SpanStart,
  type TraceIds,
  type Tracer,
} from "../tracer.ts";
import type { Sampling } from "./environment.ts";

export interface OtelTracerDeps {
  readonly resource: Resource;
  /** larder's version. */
  readonly version: string;
  readonly sampling: Sampling;
  readonly nowMs: () => number;
  /** Called with each ended span. */
  readonly ended: (span: ReadableSpan) => void;
}

/** A tracer on an SDK of its own. */
export function createOtelTracer(deps: OtelTracerDeps): Tracer {
  const { resource, version, sampling, nowMs, ended } = deps;
  const processor = {
    onStart() {},
    onEnd: ended,
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const traceIds = new RootTraceIds(sampling.rootRatio);
  const provider = new TracerProvider({
    resource,
    sampler: sampling.sampler,
    idGenerator: traceIds,
    spanProcessors: [processor],
  });
  return new OtelTracer(provider.getTracer("larder", version), traceIds, createSpanClock(nowMs));
}

/**
 * Spans of the OpenTelemetry SDK. Each gets its parent explicitly. Only sampled requests keep an
 * async context; the others pay for one decision.
 */
class OtelTracer implements Tracer {
  readonly #api: OtelTracerApi;
  readonly #traceIds: RootTraceIds;
  readonly #clock: SpanClock;
  readonly #around = new AsyncLocalStorage<OtelSpan>();

  /** `traceIds`: the id generator of `api`. */
  constructor(api: OtelTracerApi, traceIds: RootTraceIds, clock: SpanClock) {
    this.#api = api;
    this.#traceIds = traceIds;
    this.#clock = clock;
  }

  request(
    method: string,
    route: string | undefined,
    headers: RequestHeaders,
  ): RequestSpan | undefined {
    const parent = remoteContext(headers);
    // Decided here, as the SDK takes a microsecond for the same.
    if (parent === undefined && !this.#traceIds.next()) return undefined;
    const name = serverSpanName(method, route);
    const startTime = this.#clock.nowMs();
    const start = { kind: SpanKind.SERVER, startTime };
    const inner = this.#api.startSpan(name, start, parent ?? ROOT_CONTEXT);
    // A request that the caller did not sample has no span, but its log lines have its trace id.
    if (parent === undefined && !inner.isRecording()) return undefined;
    const span = new OtelSpan(inner, this.#clock);
    return {
      set: (facts) => span.set(facts),
      fail: (reason) => span.fail(reason),
      end: (error) => span.end(error),
      run: (work) => this.#around.run(span, work),
    };
  }

  span<Value>(
    { name, kind, facts }: SpanStart,
    work: (span: Span) => Promise<Value>,
  ): Promise<Value> {
    const parent = this.#recording();
    if (parent === undefined) return work(NO_SPAN);
    const inner = this.#api.startSpan(name, {
      kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTime: this.#clock.nowMs(),
      ...(facts === undefined ? {} : { attributes: facts }),
    }, trace.setSpan(ROOT_CONTEXT, parent.inner));
    const span = new OtelSpan(inner, this.#clock);
    return this.#around.run(span, () => finished(span, work));
  }

  here(): RunBelow {
    const around = this.#around.getStore();
    if (around === undefined) return (work) => work();
    return (work) => this.#around.run(around, work);
  }

  ids(): TraceIds | undefined {
    const context = this.#around.getStore()?.inner.spanContext();
    return context && { trace_id: context.traceId, span_id: context.spanId };
  }

  note(facts: SpanFacts): void {
    this.#recording()?.set(facts);
  }

  headers(): Readonly<Record<string, string>> {
    const context = this.#recording()?.inner.spanContext();
    if (context === undefined) return {};
    const tracestate = context.traceState?.serialize();
    return {
      traceparent: `00-${context.traceId}-${context.spanId}-01`,
      ...(tracestate === undefined ? {} : { tracestate }),
    };
  }

  /**
   * The current span, while it records. Work after its request, such as a probe, is not part of the
   * trace.
   */
  #recording(): OtelSpan | undefined {
    const span = this.#around.getStore();
    return span?.inner.isRecording() ? span : undefined;
  }
}

async function finished<Value>(
  span: OtelSpan,
  work: (span: Span) => Promise<Value>,
): Promise<Value> {
  try {
    const value = await work(span);
    span.end();
    return value;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

/** Statuses from here on are reasons of failed spans. */
const ERROR_STATUS_MIN = 400;

/** A span of the SDK, with failures in the form of OpenTelemetry's conventions. */
class OtelSpan implements Span {
  readonly inner: SdkSpan;
  readonly #clock: SpanClock;
  #httpStatus = 0;

  constructor(inner: SdkSpan, clock: SpanClock) {
    this.inner = inner;
    this.#clock = clock;
  }

  set(facts: SpanFacts): void {
    this.inner.setAttributes(facts);
    this.#httpStatus = Number(facts["http.response.status_code"] ?? this.#httpStatus);
  }

  fail(reason: string): void {
    this.#failed(reason);
  }

  end(error?: unknown): void {
    if (error !== undefined) this.#failed(typeOf(error), messageOf(error));
    this.inner.end(this.#clock.nowMs());
  }

  #failed(type: string, message?: string): void {
    const isBadStatus = this.#httpStatus >= ERROR_STATUS_MIN;
    this.inner.setAttribute("error.type", isBadStatus ? String(this.#httpStatus) : type);
    const described = message === undefined ? {} : { message };
    this.inner.setStatus({ code: SpanStatusCode.ERROR, ...described });
  }
}

/** The error type, from a closed set: receivers count by it. */
function typeOf(error: unknown): string {
  if (error instanceof Failure) return error.kind;
  return error instanceof Error ? error.name : "_OTHER";
}

/** A later version may append fields; version ff is invalid (W3C Trace Context, 3.2.2.1 and 4). */
const TRACEPARENT_REGEXP =
  /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The length that W3C Trace Context requires to forward. */
const TRACESTATE_CHARS_MAX = 512;

/** The caller's span; `undefined` without a well-formed header. */
function remoteContext(headers: RequestHeaders): Context | undefined {
  const traceparent = headers.get("traceparent");
  if (traceparent === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "00", more] =
    TRACEPARENT_REGEXP.exec(traceparent) ?? [];
  if (version === "00" && more !== undefined) return undefined;
  const remote = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
  if (!isSpanContextValid(remote)) return undefined;
  const traceState = traceStateOf(headers.get("tracestate"));
  return trace.setSpanContext(ROOT_CONTEXT, {
    ...remote,
    ...(traceState === undefined ? {} : { traceState }),
  });
}

/** The state of other tracers. The specification drops all if one member is malformed. */
function traceStateOf(text: string | null): TraceState | undefined {
  if (text === null || text.length > TRACESTATE_CHARS_MAX) return undefined;
  const members = text.split(",").map((member) => member.trim()).filter((member) => member !== "");
  // The library drops unreadable and repeated members.
  const state = createTraceState(text);
  return members.length > 0 && state.serialize() === members.join(",") ? state : undefined;
}

const WORDS = 2 ** 32;

/**
 * Generates the ids of new traces and decides by the id whether each is sampled, so other services
 * with a ratio agree. The JavaScript SDKs compare the XOR of an id's four words, Go and Python its
 * lower half. Here the third word equals both.
 */
class RootTraceIds implements IdGenerator {
  readonly #others = new RandomIdGenerator();
  readonly #bound: number;
  #word = 0;

  /** `ratio`: share of sampled traces. */
  constructor(ratio: number) {
    // As in `TraceIdRatioBasedSampler`.
    this.#bound = ratio === 1 ? WORDS : Math.floor(ratio * (WORDS - 1));
  }

  /** True if the next trace is sampled. Costs one random number. */
  next(): boolean {
    this.#word = randomWord();
    return this.#word < this.#bound;
  }

  generateTraceId(): string {
    // An id of zeros is invalid.
    const first = randomWord() || 1;
    const second = randomWord();
    return hex(first) + hex(second) + hex(this.#word) + hex((first ^ second) >>> 0);
  }

  generateSpanId(): string {
    return this.#others.generateSpanId();
  }
}

function randomWord(): number {
  return dice.fraction() * WORDS >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}

/** A larger difference means that the clock was set, or the machine slept. */
const DRIFT_MAX_MS = 20;

interface SpanClock {
  /** Milliseconds since 1970, with fractions. */
  nowMs(): number;
}

/**
 * A clock in microseconds. `nowMs` has whole milliseconds only, so a short query would begin after
 * its request has ended.
 */
export function createSpanClock(nowMs: () => number): SpanClock {
  let originMs = nowMs() - clock.nowMs();
  return {
    nowMs() {
      const elapsedMs = clock.nowMs();
      const now = nowMs();
      if (Math.abs(originMs + elapsedMs - now) > DRIFT_MAX_MS) originMs = now - elapsedMs;
      return originMs + elapsedMs;
    },
  };
}
