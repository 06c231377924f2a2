//! The traces of requests, and the spans that are exported to the operator's receiver.

use std::rc::Rc;

use super::Object;
use crate::edge::host::Runtime;
use api::request::Request;
use api::request_span::request_span;
use api::socket::SocketState;
use base::error::Error;
use base::host::Host as _;
use base::ids::Id;
use base::outbound::Outbound as _;
use base::trace::export::send_spans;
use base::trace::sampler::Sampler;
use base::trace::span::{Span, SpanKind, SpanQueue};
use base::trace::{StoredTrace, Trace};

impl Object {
    /// `None`: spans are not exported.
    pub(super) fn find_sampler(&self) -> Option<Sampler> {
        self.outbound.spans().map(|spans| spans.sampler)
    }

    /// A frame belongs to the trace of the request that opened its socket.
    pub(super) fn trace_of_frame(&self, state: &SocketState) -> Option<Rc<Trace>> {
        let opened = state.trace.as_ref().and_then(StoredTrace::find_trace);
        match opened {
            Some(opened) => Some(Rc::new(opened.child(&Runtime))),
            None => Trace::of_request(None, self.find_sampler(), &Runtime).map(Rc::new),
        }
    }

    /// The queue for the spans of a trace. `None`: they are not recorded.
    pub(super) fn spans_of(&self, trace: &Trace) -> Option<&SpanQueue> {
        self.outbound.spans().filter(|_| trace.is_sampled)
    }

    /// Records the span of a request that was answered.
    pub(super) fn record_request(
        &self,
        trace: &Trace,
        request: &Request,
        began_at: i64,
        failure: Option<&Error>,
    ) {
        if let Some(spans) = self.spans_of(trace) {
            let times = (began_at, Runtime.now_ms());
            let span = request_span(trace, self.name.get(), &request.route, times, failure);
            spans.push(span.with(spans.take_recorded(trace.span)));
        }
    }

    /// Records a compaction that followed an answer, as a trace of its own.
    pub(super) fn record_compaction(&self, trace: Option<&Trace>, session_id: &Id, began_at: i64) {
        let Some(trace) = trace else {
            return;
        };
        if let Some(spans) = self.spans_of(trace) {
            let times = (began_at, Runtime.now_ms());
            let span = Span::new(trace, "compact_context", SpanKind::Internal, times)
                .text("gen_ai.operation.name", "compact_context")
                .text("gen_ai.agent.name", self.name.get())
                .text("gen_ai.conversation.id", session_id.as_str());
            spans.push(span);
        }
    }

    /// Sends the queued spans, after the answer.
    pub(super) fn export_later(self: &Rc<Self>) {
        let Some(spans) = self.outbound.spans() else {
            return;
        };
        if spans.is_empty() {
            return;
        }
        let object = Rc::clone(self);
        self.run_later(async move {
            if let Some(spans) = object.outbound.spans() {
                send_spans(&object.outbound, spans, &Runtime).await;
            }
        });
    }
}
