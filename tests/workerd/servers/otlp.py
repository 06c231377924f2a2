# Reads a request of OpenTelemetry's exporters as its own messages, strictly: an unknown field,
# or a value of another type, fails. Standard input has a body a line, as `{"json": "…"}` or as
# `{"protobuf": "…"}` in base64; standard output has the spans of each, a line of JSON.
import base64
import json
import sys

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


def ids_as_base64(value):
    """OTLP writes ids as hexadecimal digits where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [ids_as_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(item)).decode() if name in IDS else ids_as_base64(item)
        for name, item in value.items()
    }


def read(line):
    body = json.loads(line)
    if "protobuf" in body:
        return ExportTraceServiceRequest.FromString(base64.b64decode(body["protobuf"]))
    text = json.dumps(ids_as_base64(json.loads(body["json"])))
    return Parse(text, ExportTraceServiceRequest(), ignore_unknown_fields=False)


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind)


for line in sys.stdin:
    request = read(line)
    # The message is serialized and parsed again: nothing of it is lost.
    assert ExportTraceServiceRequest.FromString(request.SerializeToString()) == request
    spans = []
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                spans.append(
                    {
                        "traceId": span.trace_id.hex(),
                        "spanId": span.span_id.hex(),
                        "parentSpanId": span.parent_span_id.hex(),
                        "name": span.name,
                        "kind": span.kind,
                        "startTimeUnixNano": str(span.start_time_unix_nano),
                        "endTimeUnixNano": str(span.end_time_unix_nano),
                        "status": span.status.code,
                        "attributes": {item.key: value_of(item.value) for item in span.attributes},
                    }
                )
    print(json.dumps(spans), flush=True)
