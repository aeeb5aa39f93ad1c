"""Counts the spans in bodies of OTLP in JSON, one in a line of standard input, by the published schema of OpenTelemetry."""
import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


def read(value):
    """OTLP writes ids in hexadecimal digits, other messages of protobuf bytes in base64."""
    if isinstance(value, list):
        return [read(part) for part in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        name: base64.b64encode(bytes.fromhex(part)).decode() if name in ids else read(part)
        for name, part in value.items()
    }


number = 0
for line in sys.stdin:
    request = trace_service_pb2.ExportTraceServiceRequest()
    json_format.ParseDict(read(json.loads(line)), request)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
                assert span.end_time_unix_nano >= span.start_time_unix_nano > 0, span
                number += 1
print(number)
