import { type Span as SdkSpan, SpanStatusCode } from "@opentelemetry/api";
import { Failure, messageOf } from "../../base/failure.ts";
import type { Span, SpanFacts } from "../tracer.ts";

/** From here on an HTTP status is an error, where its span failed at all. */
const ERROR_STATUS_MIN = 400;

/** A span of the SDK, which failures are told of as OpenTelemetry's conventions want. */
export class OtelSpan implements Span {
  readonly inner: SdkSpan;
  #httpStatus = 0;

  constructor(inner: SdkSpan) {
    this.inner = inner;
  }

  set(facts: SpanFacts): void {
    this.inner.setAttributes(facts);
    this.#httpStatus = Number(facts["http.response.status_code"] ?? this.#httpStatus);
  }

  fail(reason: string): void {
    const isError = this.#httpStatus >= ERROR_STATUS_MIN;
    this.#failed(isError ? String(this.#httpStatus) : reason);
  }

  end(error?: unknown): void {
    if (error !== undefined) this.#failed(typeOf(error), messageOf(error));
    this.inner.end();
  }

  #failed(type: string, message?: string): void {
    this.inner.setAttribute("error.type", type);
    const described = message === undefined ? {} : { message };
    this.inner.setStatus({ code: SpanStatusCode.ERROR, ...described });
  }
}

/** One of few, as receivers count by it. */
function typeOf(error: unknown): string {
  if (error instanceof Failure) return error.kind;
  return error instanceof Error ? error.name : "_OTHER";
}
