//! What operations add to the span of their request (`request_span.rs`). Operations on memory have
//! the names of OpenTelemetry's conventions for generative AI.

use std::rc::Rc;

use serde::Deserialize;

use super::operation::Agent;
use access::Caller;
use base::host::Host;
use base::json;
use base::trace::header::{CallerSpan, parse_parent};
use base::trace::span::{AttributeValue, SpanQueue};
use base::trace::{Trace, current};

/// The caller's span, from `traceparent` and `tracestate`. It determines whether the request's
/// trace is recorded, and which trace it belongs to, here and at every service that is called. So
/// it is accepted only from the holder of the secret; a request with a minted token begins a trace.
pub fn find_parent(
    caller: &Caller,
    traceparent: Option<&str>,
    tracestate: Option<&str>,
) -> Option<CallerSpan> {
    match caller {
        Caller::Owner => parse_parent(traceparent, tracestate),
        Caller::Scoped(_) => None,
    }
}

/// The trace that the caller of a refused request named. No span is recorded for it. `caller`:
/// `None` if the caller is unknown.
pub fn trace_of_refused(
    caller: Option<&Caller>,
    traceparent: Option<&str>,
    host: &dyn Host,
) -> Option<Trace> {
    let parent = find_parent(caller.unwrap_or(&Caller::Owner), traceparent, None);
    Trace::of_request(parent, None, host)
}

/// Records the block and the entry or document of an operation on memory, for the span of its
/// request. Nothing of the content is recorded.
pub fn record_memory(agent: &Agent<'_>, operation: &str, body: &[u8]) {
    #[derive(Deserialize)]
    struct Named {
        label: Option<String>,
        key: Option<String>,
    }
    let Some(name) = memory_operation(operation) else {
        return;
    };
    let Some((spans, trace)) = recorded(agent) else {
        return;
    };
    let text = std::str::from_utf8(body).unwrap_or_default();
    let Ok(Named { label, key }) = json::decode::<Named>(text) else {
        return;
    };
    if let Some(label) = label {
        spans.record(
            trace.span,
            "gen_ai.memory.store.id",
            AttributeValue::Text(label),
        );
    }
    if let Some(key) = key {
        spans.record(
            trace.span,
            "gen_ai.memory.record.id",
            AttributeValue::Text(key),
        );
    }
    if matches!(name, "upsert_memory" | "update_memory" | "delete_memory")
        && operation != "clearBlocks"
    {
        spans.record(trace.span, RECORD_COUNT, AttributeValue::Number(1));
    }
}

/// Records how many results a search returns, for the span of its request.
pub fn record_found(agent: &Agent<'_>, count: usize) {
    if let Some((spans, trace)) = recorded(agent) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        spans.record(trace.span, RECORD_COUNT, AttributeValue::Number(count));
    }
}

const RECORD_COUNT: &str = "gen_ai.memory.record.count";

/// The queue and the trace of the running request, if its span is recorded.
fn recorded<'a>(agent: &Agent<'a>) -> Option<(&'a SpanQueue, Rc<Trace>)> {
    let trace = current().filter(|trace| trace.is_sampled)?;
    Some((agent.outbound.spans()?, trace))
}

/// The conventions' name of an operation on memory.
pub fn memory_operation(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "setBlock" | "setEntry" | "putSkill" => "upsert_memory",
        "appendToBlock" | "revertBlock" | "clearBlocks" => "update_memory",
        "deleteEntry" | "deleteSkill" => "delete_memory",
        "searchContext" | "search" => "search_memory",
        "defineBlock" => "create_memory_store",
        "removeBlock" => "delete_memory_store",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use access::TokenScope;
    use base::testing::FixedHost;
    use base::trace::header::render_hex;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    fn id(trace: Option<Trace>) -> Option<String> {
        trace.map(|trace| render_hex(&trace.id.0))
    }

    #[test]
    fn a_refused_request_stays_in_its_callers_trace() {
        let host = FixedHost::default();
        let named = |caller: Option<&Caller>| id(trace_of_refused(caller, Some(PARENT), &host));
        assert_eq!(named(Some(&Caller::Owner)).as_deref(), Some(ID));
        assert_eq!(named(None).as_deref(), Some(ID));
        // A trace named by the holder of a token is not trusted.
        assert_eq!(named(Some(&Caller::Scoped(TokenScope::default()))), None);
        assert!(trace_of_refused(None, None, &host).is_none());
    }
}
