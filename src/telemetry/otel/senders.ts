import {
  type ISerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from "@opentelemetry/otlp-transformer";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { GrpcTransport } from "./grpc_transport.ts";

/** One function for each signal; it rejects if the export failed. */
export interface Senders {
  readonly traces: (spans: readonly ReadableSpan[]) => Promise<void>;
  readonly logs: (records: readonly ReadableLogRecord[]) => Promise<void>;
  readonly metrics: (metrics: ResourceMetrics) => Promise<void>;
}

/** Senders for a collector. */
export function grpcSenders(transport: GrpcTransport): Senders {
  const send = async <Request>(
    serializer: ISerializer<Request, unknown>,
    service: string,
    request: Request,
  ): Promise<void> => {
    const message = serializer.serializeRequest(request);
    if (message === undefined) throw new Error("Cannot export telemetry: it has no form");
    await transport.call(`/opentelemetry.proto.collector.${service}Service/Export`, message);
  };
  return {
    traces: (spans) => send(ProtobufTraceSerializer, "trace.v1.Trace", [...spans]),
    logs: (records) => send(ProtobufLogsSerializer, "logs.v1.Logs", [...records]),
    metrics: (metrics) => send(ProtobufMetricsSerializer, "metrics.v1.Metrics", metrics),
  };
}
