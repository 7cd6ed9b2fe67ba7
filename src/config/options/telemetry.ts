import { httpUrl } from "../kinds/upstream_url.ts";
import { boolean } from "../kinds/plain.ts";
import type { OptionTable } from "../kinds/option.ts";

/** Options of logs, metrics, traces and usage reports. */
export const TELEMETRY_OPTIONS = {
  "prometheus.enabled": {
    kind: boolean,
    default: false,
    help: "Serve /metrics for Prometheus",
  },
  "otel.enabled": {
    kind: boolean,
    default: false,
    help: "Emit logs, metrics and traces with OpenTelemetry",
    also: [{ key: "opentelemetry.enabled" }],
    details: "Reads OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_TRACES_SAMPLER(_ARG).",
  },
  "otel.grpc-url": {
    kind: httpUrl,
    shown: "standard output, as JSON lines",
    example: "http://localhost:4317",
    help: "OTLP receiver (gRPC), such as http://localhost:4317",
    also: [{ key: "opentelemetry.grpc-url" }],
  },
  "otel.propagate-to-upstreams": {
    kind: boolean,
    default: false,
    help: "Send the trace context to upstreams (traceparent)",
    details: "For traced upstreams of your own; requires --otel-enabled.",
  },
  "analytics.reporting-enabled": {
    kind: boolean,
    default: false,
    help: "Report anonymous usage figures; `larder analytics --show` shows them",
    also: [{ key: "analytics.reporting.enabled" }],
  },
  "analytics.reporting-url": {
    kind: httpUrl,
    shown: "none: nothing is ever sent",
    example: "https://usage.example.org",
    help: "Receiver of the daily usage report",
  },
} as const satisfies OptionTable;
