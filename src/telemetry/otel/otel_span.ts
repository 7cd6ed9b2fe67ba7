import { type Span as SdkSpan, SpanStatusCode } from "@opentelemetry/api";
import { Failure, messageOf } from "../../base/failure.ts";
import type { Span, SpanFacts } from "../tracer.ts";
import type { SpanClock } from "./span_clock.ts";

/** Statuses from here on are reasons of failed spans. */
const ERROR_STATUS_MIN = 400;

/** A span of the SDK, with failures in the form of OpenTelemetry's conventions. */
export class OtelSpan implements Span {
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
