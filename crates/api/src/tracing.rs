//! The span of a request: an operation, or what another route does. Operations on memory have
//! the names of OpenTelemetry's conventions for generative AI.

use std::rc::Rc;

use serde::Deserialize;

use super::operation::Agent;
use super::route::Route;
use access::Caller;
use base::error::Error;
use base::json;
use base::trace::header::{CallerSpan, parse_parent};
use base::trace::span::{AttributeValue, Span, SpanKind, SpanQueue};
use base::trace::{Trace, current};

/// The caller's span, from `traceparent` and `tracestate`. It determines whether the request's
/// trace is recorded, and which trace it belongs to, here and at every service that is called. So
/// it is accepted from the holder of the secret alone; a request with a minted token begins a
/// trace.
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

/// Records the block and the entry or document of an operation on memory, for the span of its
/// request. Nothing of the content is recorded.
pub fn note_memory(agent: &Agent<'_>, operation: &str, body: &[u8]) {
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
        spans.note(
            trace.span,
            "gen_ai.memory.store.id",
            AttributeValue::Text(label),
        );
    }
    if let Some(key) = key {
        spans.note(
            trace.span,
            "gen_ai.memory.record.id",
            AttributeValue::Text(key),
        );
    }
    if matches!(name, "upsert_memory" | "update_memory" | "delete_memory")
        && operation != "clearBlocks"
    {
        spans.note(trace.span, RECORD_COUNT, AttributeValue::Number(1));
    }
}

/// Records how many results a search returns, for the span of its request.
pub fn note_found(agent: &Agent<'_>, count: usize) {
    if let Some((spans, trace)) = recorded(agent) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        spans.note(trace.span, RECORD_COUNT, AttributeValue::Number(count));
    }
}

const RECORD_COUNT: &str = "gen_ai.memory.record.count";

/// The queue and the trace of the running request, if its span is recorded.
fn recorded<'a>(agent: &Agent<'a>) -> Option<(&'a SpanQueue, Rc<Trace>)> {
    let trace = current().filter(|trace| trace.is_sampled)?;
    Some((agent.outbound.spans()?, trace))
}

/// The conventions' name of an operation on memory.
fn memory_operation(operation: &str) -> Option<&'static str> {
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

/// The name of a route's span. An operation's name is the only part of the URL in it.
fn name_of(route: &Route) -> &str {
    match route {
        Route::Rpc { operation, .. } => operation,
        Route::Health => "health",
        Route::OAuthClient => "oauth client",
        Route::OAuthReturn { .. } => "oauth return",
        Route::Agents { .. } => "list agents",
        Route::Messages { .. } => "get-messages",
        Route::Export { .. } | Route::ExportAgent { .. } => "export",
        Route::Import { .. } | Route::ImportAgent { .. } => "import",
        Route::Chat { .. } => "chat",
        Route::Resume { .. } => "resume",
        Route::Mcp { .. } => "mcp",
        Route::Provider { call, .. } => call.name(),
        Route::Socket { .. } => "socket",
    }
}

/// The span of a request that was answered.
pub fn request_span(
    trace: &Trace,
    agent: &str,
    route: &Route,
    times: (i64, i64),
    failure: Option<&Error>,
) -> Span {
    let operation = match route {
        Route::Rpc { operation, .. } => Some(operation.as_str()),
        _ => None,
    };
    let memory = operation.and_then(memory_operation);
    let span = Span::new(
        trace,
        memory.unwrap_or(name_of(route)),
        SpanKind::Server,
        times,
    )
    .text("gen_ai.agent.name", agent)
    .maybe("gen_ai.operation.name", memory)
    .maybe("session_agent.operation", operation);
    match failure {
        Some(error) => span.failed(error.code.name(), &error.message),
        None => span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::find_entry;
    use base::trace::ids::{SpanId, TraceId};

    #[test]
    fn memory_has_the_conventions_names_and_each_is_an_operation() {
        let trace = Trace {
            id: TraceId([1; 16]),
            span: SpanId([2; 8]),
            parent: None,
            is_sampled: true,
            state: None,
        };
        for (operation, name) in [
            ("setBlock", "upsert_memory"),
            ("appendToBlock", "update_memory"),
            ("deleteSkill", "delete_memory"),
            ("searchContext", "search_memory"),
            ("defineBlock", "create_memory_store"),
            ("removeBlock", "delete_memory_store"),
            ("getHistory", "getHistory"),
        ] {
            assert!(find_entry(operation).is_ok());
            let route = Route::Rpc {
                agent: "alice".to_owned(),
                operation: operation.to_owned(),
            };
            assert_eq!(
                request_span(&trace, "alice", &route, (0, 1), None).name,
                name
            );
        }
    }
}
