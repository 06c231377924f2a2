//! Renders spans as OTLP/HTTP JSON: OpenTelemetry's protobuf messages in their JSON
//! encoding, with hexadecimal ids.

use serde_json::Value;

use super::header::render_hex;
use super::span::{AttributeValue, Span};
use crate::json::{self, json};

/// The name of the instrumentation scope: the program that recorded the spans.
const SCOPE: &str = "session-agent";

/// OpenTelemetry's status code for an error.
const FAILED: i64 = 2;

/// The body of a request to `/v1/traces`. `service` is the service's name.
pub fn render(service: &str, spans: &[Span], dropped: u64) -> String {
    let mut resource = vec![attribute(
        "service.name",
        &AttributeValue::Text(service.to_owned()),
    )];
    if dropped > 0 {
        let dropped = AttributeValue::Number(i64::try_from(dropped).unwrap_or(i64::MAX));
        resource.push(attribute("session_agent.spans.dropped", &dropped));
    }
    let spans: Vec<Value> = spans.iter().map(render_span).collect();
    json::text(&json!({
        "resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{
                "scope": {"name": SCOPE, "version": env!("CARGO_PKG_VERSION")},
                "spans": spans,
            }],
        }],
    }))
}

fn render_span(span: &Span) -> Value {
    let attributes = span.attributes.iter();
    let attributes: Vec<Value> = attributes
        .map(|(name, value)| attribute(name, value))
        .collect();
    let mut fields = json!({
        "traceId": render_hex(&span.trace_id.0),
        "spanId": render_hex(&span.id.0),
        "name": span.name,
        "kind": span.kind as i64,
        "startTimeUnixNano": nanoseconds(span.started_at_ms),
        "endTimeUnixNano": nanoseconds(span.ended_at_ms),
        "attributes": attributes,
    });
    if let Value::Object(fields) = &mut fields {
        if let Some(parent) = span.parent {
            fields.insert("parentSpanId".to_owned(), json!(render_hex(&parent.0)));
        }
        if let Some((_, sentence)) = &span.failure {
            let status = json!({"code": FAILED, "message": sentence});
            fields.insert("status".to_owned(), status);
        }
    }
    fields
}

/// Protobuf's JSON encodes 64-bit integers as strings.
fn nanoseconds(ms: i64) -> String {
    format!("{}000000", ms.max(0))
}

fn attribute(name: &str, value: &AttributeValue) -> Value {
    json!({"key": name, "value": any_value(value)})
}

fn any_value(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Number(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Real(number) => json!({"doubleValue": number}),
        AttributeValue::Flag(flag) => json!({"boolValue": flag}),
        AttributeValue::Texts(texts) => {
            let values = texts.iter().map(|text| json!({"stringValue": text}));
            let values: Vec<Value> = values.collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::trace::header::parse_parent;
    use crate::trace::ids::{SpanId, TraceId};
    use crate::trace::span::SpanKind;

    #[test]
    fn a_span_encodes_as_in_the_specification() {
        let trace = Trace {
            id: TraceId([0x5b; 16]),
            span: SpanId([0xee; 8]),
            parent: Some(SpanId([1; 8])),
            is_sampled: true,
            state: None,
        };
        let span = Span::new(
            &trace,
            "chat m",
            SpanKind::Client,
            (1_544_712_660_000, 1_544_712_661_000),
        )
        .text("gen_ai.operation.name", "chat")
        .number("gen_ai.usage.input_tokens", 7)
        .real("x", 0.5)
        .flag("y", true)
        .texts("z", &["stop"])
        .failed("model_failed", "It failed.");
        let body: Value = serde_json::from_str(&render("agents", &[span], 0)).unwrap();
        let scope = &body["resourceSpans"][0]["scopeSpans"][0];
        assert_eq!(
            scope["spans"][0],
            json!({
                "traceId": "5b".repeat(16),
                "spanId": "ee".repeat(8),
                "parentSpanId": "01".repeat(8),
                "name": "chat m",
                "kind": 3,
                "startTimeUnixNano": "1544712660000000000",
                "endTimeUnixNano": "1544712661000000000",
                "attributes": [
                    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
                    {"key": "x", "value": {"doubleValue": 0.5}},
                    {"key": "y", "value": {"boolValue": true}},
                    {"key": "z", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
                    {"key": "error.type", "value": {"stringValue": "model_failed"}},
                ],
                "status": {"code": 2, "message": "It failed."},
            })
        );
        assert_eq!(
            body["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"],
            "agents"
        );
        let header = format!("00-{}-{}-01", "5b".repeat(16), "ee".repeat(8));
        assert_eq!(parse_parent(Some(&header), None).unwrap().id, trace.id);
    }
}
