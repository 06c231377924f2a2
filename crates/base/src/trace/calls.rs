//! Records the spans of calls that leave the object.

use super::Trace;
use super::span::{Span, SpanKind, SpanQueue};
use crate::outbound::{CallFailure, Endpoint, host_and_port, redact_url};

/// Records a call whose answer has started, or that failed. `outcome` is the answer's
/// status.
pub fn record_call(
    queue: Option<&SpanQueue>,
    call: Option<&Trace>,
    endpoint: &Endpoint,
    times: (i64, i64),
    outcome: Result<u16, &CallFailure>,
) {
    let (Some(queue), Some(call)) = (queue, call.filter(|call| call.is_sampled)) else {
        return;
    };
    let span = |name: String, url: &str| {
        let (host, port) = host_and_port(url);
        Span::new(call, name, SpanKind::Client, times)
            .text("http.request.method", "POST")
            .text("server.address", &host)
            .number("server.port", port)
            .text("url.full", &without_secrets(url))
    };
    let span = match endpoint {
        Endpoint::Url(url) => span("POST".to_owned(), url),
        Endpoint::Service { binding, path } => span(
            format!("POST {binding}"),
            &format!("https://{binding}/{path}"),
        ),
        Endpoint::Agent { name, operation } => span(operation.clone(), AGENT_URL)
            .text("session_agent.operation", operation)
            .text("session_agent.called_agent", name),
        Endpoint::Directory { .. } => span("POST directory".to_owned(), DIRECTORY_URL),
    };
    queue.push(match outcome {
        Ok(status) => {
            let span = span.number("http.response.status_code", i64::from(status));
            match status {
                400.. => span.failed(&status.to_string(), "The response has an error status."),
                _ => span,
            }
        }
        Err(failure) => span.failed("no_answer", &failure.reason()),
    });
}

/// The URLs of calls within this Worker, whose paths are not recorded.
const AGENT_URL: &str = "https://agent/";
const DIRECTORY_URL: &str = "https://directory/";

/// Replaces a path or a query in `url.full`, as the conventions prescribe for removed
/// values.
const REMOVED: &str = "REDACTED";

/// The URL without anything that may be a credential: many services put one into the path.
fn without_secrets(url: &str) -> String {
    let origin = redact_url(url);
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after.find(['/', '?', '#']).and_then(|at| after.get(at..));
    if path.is_none_or(|path| path == "/") {
        format!("{origin}/")
    } else {
        format!("{origin}/{REMOVED}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ids::{SpanId, TraceId};
    use crate::trace::span::AttributeValue;

    fn trace(is_sampled: bool) -> Trace {
        Trace {
            id: TraceId([1; 16]),
            span: SpanId([2; 8]),
            parent: None,
            is_sampled,
            state: None,
        }
    }

    #[test]
    fn a_call_records_its_host_but_no_path_or_credential() {
        let queue = SpanQueue::default();
        let endpoint =
            Endpoint::Url("https://key:secret@tools.example/a/secret?k=secret".to_owned());
        record_call(Some(&queue), Some(&trace(true)), &endpoint, (1, 2), Ok(503));
        record_call(
            Some(&queue),
            Some(&trace(false)),
            &endpoint,
            (1, 2),
            Ok(200),
        );
        record_call(Some(&queue), None, &endpoint, (1, 2), Ok(200));
        let spans = queue.take_batch();
        assert_eq!(spans.len(), 1);
        let printed = format!("{:?}", spans[0]);
        assert!(
            printed.contains("tools.example") && !printed.contains("secret"),
            "{printed}"
        );
        assert_eq!(spans[0].failure.as_ref().unwrap().0, "503");
    }

    #[test]
    fn each_call_has_the_attributes_of_an_http_client_span() {
        let queue = SpanQueue::default();
        let service = |path: &str| Endpoint::Service {
            binding: "TOOLS".to_owned(),
            path: path.to_owned(),
        };
        let agent = Endpoint::Agent {
            name: "bob".to_owned(),
            operation: "setBlock".to_owned(),
        };
        let url = |url: &str| Endpoint::Url(url.to_owned());
        for (endpoint, host, port, full) in [
            (
                url("https://a.example"),
                "a.example",
                443,
                "https://a.example/",
            ),
            (
                url("https://u:p@a.example:8443/v1?k=1"),
                "a.example",
                8443,
                "https://a.example:8443/REDACTED",
            ),
            (
                url("http://127.0.0.1/"),
                "127.0.0.1",
                80,
                "http://127.0.0.1/",
            ),
            (
                url("http://[::1]:8080/x"),
                "[::1]",
                8080,
                "http://[::1]:8080/REDACTED",
            ),
            (service(""), "TOOLS", 443, "https://TOOLS/"),
            (service("mcp"), "TOOLS", 443, "https://TOOLS/REDACTED"),
            (agent, "agent", 443, "https://agent/"),
        ] {
            record_call(Some(&queue), Some(&trace(true)), &endpoint, (1, 2), Ok(200));
            let span = queue.take_batch().remove(0);
            let text = |text: &str| AttributeValue::Text(text.to_owned());
            for expected in [
                ("http.request.method", text("POST")),
                ("server.address", text(host)),
                ("server.port", AttributeValue::Number(port)),
                ("url.full", text(full)),
                ("http.response.status_code", AttributeValue::Number(200)),
            ] {
                assert!(
                    span.attributes.contains(&expected),
                    "{expected:?} in {span:?}"
                );
            }
        }
    }
}
