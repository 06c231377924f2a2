//! The spans of calls that leave the object.

use super::Trace;
use super::span::{Span, SpanKind, SpanQueue};
use crate::outbound::{CallFailure, Endpoint, conceal_url};

/// Notes a call whose answer has begun, or that failed. `outcome`: the answer's status.
pub fn note_call(
    queue: Option<&SpanQueue>,
    call: Option<&Trace>,
    place: &Endpoint,
    times: (i64, i64),
    outcome: Result<u16, &CallFailure>,
) {
    let (Some(queue), Some(call)) = (queue, call.filter(|call| call.is_sampled)) else {
        return;
    };
    let span = |name: String| {
        let span = Span::new(call, name, SpanKind::Client, times);
        span.text("http.request.method", "POST")
    };
    let span = match place {
        Endpoint::Url(url) => {
            let origin = conceal_url(url);
            let host = origin.split_once("://").map_or(&*origin, |(_, host)| host);
            span("POST".to_owned()).text("server.address", host)
        }
        Endpoint::Service { binding, .. } => {
            span(format!("POST {binding}")).text("server.address", binding)
        }
        Endpoint::Agent { name, operation } => span(operation.clone())
            .text("session_agent.operation", operation)
            .text("session_agent.called_agent", name),
        Endpoint::Directory { .. } => span("POST directory".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ids::{SpanId, TraceId};

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
    fn a_call_shows_where_it_went_without_path_or_credential() {
        let queue = SpanQueue::default();
        let place = Endpoint::Url("https://key:secret@tools.example/a/secret?k=secret".to_owned());
        note_call(Some(&queue), Some(&trace(true)), &place, (1, 2), Ok(503));
        note_call(Some(&queue), Some(&trace(false)), &place, (1, 2), Ok(200));
        note_call(Some(&queue), None, &place, (1, 2), Ok(200));
        let spans = queue.take_batch();
        assert_eq!(spans.len(), 1);
        let told = format!("{:?}", spans[0]);
        assert!(
            told.contains("tools.example") && !told.contains("secret"),
            "{told}"
        );
        assert_eq!(spans[0].failure.as_ref().unwrap().0, "503");
    }
}
