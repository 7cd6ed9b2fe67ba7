import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { samplingOf } from "../../src/telemetry/otel/environment.ts";
import { createOtelTracer } from "../../src/telemetry/otel/otel_tracer.ts";
import type { Tracer } from "../../src/telemetry/tracer.ts";

/** A span that is over, in short. */
export interface RecordedSpan {
  readonly name: string;
  readonly kind: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** `undefined` unless it failed; then its message, if any. */
  readonly error: string | undefined;
  readonly span: ReadableSpan;
}

/** A real tracer whose spans stay here; `environment` as `OTEL_…` variables. */
export class RecordedSpans {
  readonly list: RecordedSpan[] = [];
  readonly tracer: Tracer;

  constructor(environment: Readonly<Record<string, string>> = {}) {
    this.tracer = createOtelTracer({
      resource: resourceFromAttributes({ "service.name": "larder" }),
      version: "0",
      nowMs: Date.now,
      sampling: samplingOf((name) => environment[name], (variable) => {
        throw new Error(`Cannot understand ${variable}`);
      }),
      ended: (span) => {
        const { name, attributes: facts, status: { code, message = "" } } = span;
        const error = code === SpanStatusCode.ERROR ? message : undefined;
        this.list.push({ name, kind: SpanKind[span.kind].toLowerCase(), facts, error, span });
      },
    });
  }

  /** The one span of that name; throws when there is none, or more. */
  named(name: string): RecordedSpan {
    const [span, ...more] = this.list.filter((one) => one.name === name);
    if (span !== undefined && more.length === 0) return span;
    throw new Error(`Cannot find one ${name} among: ${this.list.map((one) => one.name)}`);
  }
}
