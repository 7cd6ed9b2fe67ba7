import { httpUrl } from "../kinds/http_url.ts";
import { boolean } from "../kinds/plain.ts";
import type { OptionTable } from "../kinds/option.ts";

/** What larder tells of itself, and to whom. */
export const TELEMETRY_OPTIONS = {
  "prometheus.enabled": {
    kind: boolean,
    default: false,
    help: "Answer /metrics, for Prometheus",
  },
  "otel.enabled": {
    kind: boolean,
    default: false,
    help: "Emit logs, metrics and traces with OpenTelemetry",
    also: [{ key: "opentelemetry.enabled" }],
    details: "OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_TRACES_SAMPLER(_ARG) count.",
  },
  "otel.grpc-url": {
    kind: httpUrl,
    shown: "standard output, as JSON lines",
    example: "http://localhost:4317",
    help: "OTLP receiver for them (gRPC), such as http://localhost:4317",
    also: [{ key: "opentelemetry.grpc-url" }],
  },
  "otel.propagate-to-upstreams": {
    kind: boolean,
    default: false,
    help: "Tell upstreams which trace their requests belong to (traceparent)",
    details: "For upstreams of your own that are traced too; it counts with --otel-enabled.",
  },
  "analytics.reporting-enabled": {
    kind: boolean,
    default: false,
    help: "Report anonymous usage figures; `larder analytics --show` tells them",
    also: [{ key: "analytics.reporting.enabled" }],
  },
  "analytics.reporting-url": {
    kind: httpUrl,
    shown: "none: nothing is ever sent",
    example: "https://usage.example.org",
    help: "Where usage figures are reported to, once a day",
  },
} as const satisfies OptionTable;
