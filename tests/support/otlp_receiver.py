"""An OTLP/gRPC receiver that shares no code with larder: Google's gRPC server and OpenTelemetry's
protobuf definitions. Each request goes to FOLDER/{traces,metrics,logs}.json, one line of JSON.
Usage: otlp_receiver.py FOLDER; prints its port of 127.0.0.1 once it listens."""

import base64
import json
import os
import sys
from concurrent import futures

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

FOLDER = sys.argv[1]
IDS = ("traceId", "spanId", "parentSpanId")


def hexadecimal(value):
    """Protobuf's JSON has bytes as base64, OTLP's has ids in hexadecimal."""
    if isinstance(value, list):
        return [hexadecimal(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(one).hex() if key in IDS else hexadecimal(one)
        for key, one in value.items()
    }


def handler(signal, service, request, response):
    def export(message, _context):
        with open(os.path.join(FOLDER, signal + ".json"), "a") as file:
            file.write(json.dumps(hexadecimal(MessageToDict(message))) + "\n")
        return response()

    name = f"opentelemetry.proto.collector.{service}Service"
    method = grpc.unary_unary_rpc_method_handler(
        export, request.FromString, response.SerializeToString
    )
    return grpc.method_handlers_generic_handler(name, {"Export": method})


server = grpc.server(futures.ThreadPoolExecutor(1))
server.add_generic_rpc_handlers((
    handler("traces", "trace.v1.Trace", traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse),
    handler("metrics", "metrics.v1.Metrics", metrics.ExportMetricsServiceRequest, metrics.ExportMetricsServiceResponse),
    handler("logs", "logs.v1.Logs", logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse),
))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
