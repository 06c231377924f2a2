//! The span of a request: an operation, or what another route does.

use super::route::Route;
use super::tracing::memory_operation;
use base::error::Error;
use base::trace::Trace;
use base::trace::span::{Span, SpanKind};

/// The name of a route's span. An operation's name is the only part of the URL in it.
fn name_of(route: &Route) -> &str {
    match route {
        Route::Rpc { operation, .. } => operation.name(),
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
        Route::Rpc { operation, .. } => Some(operation.name()),
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
    use crate::table::NamedOperation;
    use base::trace::ids::{SpanId, TraceId};

    #[test]
    fn each_memory_span_name_is_an_operation() {
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
            let route = Route::Rpc {
                agent: "alice".to_owned(),
                operation: NamedOperation::find(operation.to_owned()),
            };
            assert!(matches!(
                &route,
                Route::Rpc {
                    operation: NamedOperation::Known(_),
                    ..
                }
            ));
            assert_eq!(
                request_span(&trace, "alice", &route, (0, 1), None).name,
                name
            );
        }
    }
}
