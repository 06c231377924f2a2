//! Traces: the request that a piece of work belongs to, also across services, by the W3C's
//! Trace Context. Like the owner (`base/owner.rs`), the trace is attached to the task: a
//! turn calls models, tools and backends from many places, and each call carries the trace.
//!
//! The sender of a request sets its trace. A trace is therefore untrusted data: it is
//! validated strictly, and no other behavior depends on it. Without a trace in the
//! request, and without a receiver of spans, there is no trace.

pub mod calls;
pub mod export;
pub mod header;
pub mod ids;
pub mod otlp;
pub mod sampler;
pub mod span;

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use self::header::{CallerSpan, parse_parent, parse_span, render_hex, render_traceparent};
use self::ids::{SpanId, TraceId};
use self::sampler::Sampler;
use crate::host::Host;

pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

/// The trace of a task, and the task's current span.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub id: TraceId,
    pub span: SpanId,
    /// The parent span, here or at the caller.
    pub parent: Option<SpanId>,
    pub is_sampled: bool,
    /// The data that other tracers want to be passed on.
    pub state: Option<Rc<str>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Trace>>> = const { RefCell::new(None) };
}

/// The trace of the running task.
pub fn current() -> Option<Rc<Trace>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Trace {
    /// The trace of a request. `parent`: the span that the caller sent. `sampler`: makes
    /// the sampling decision for the object's spans, if they are exported.
    pub fn of_request(
        parent: Option<CallerSpan>,
        sampler: Option<Sampler>,
        host: &dyn Host,
    ) -> Option<Self> {
        match (parent, sampler) {
            (Some(parent), sampler) => Some(Self {
                id: parent.id,
                span: SpanId::mint(host),
                parent: Some(parent.span),
                is_sampled: sampler.map_or(parent.is_sampled, |sampler| {
                    sampler.samples(parent.id, Some(parent.is_sampled))
                }),
                state: parent.state,
            }),
            (None, Some(sampler)) => {
                let mut id = [0; 16];
                host.fill_random(&mut id);
                let id = TraceId(id);
                Some(Self {
                    id,
                    span: SpanId::mint(host),
                    parent: None,
                    is_sampled: sampler.samples(id, None),
                    state: None,
                })
            }
            (None, None) => None,
        }
    }

    /// A child span of this one.
    pub fn child(&self, host: &dyn Host) -> Self {
        self.with_span(SpanId::mint(host))
    }

    /// A child span whose id is derived from its name.
    pub fn part(&self, name: &str) -> Self {
        self.with_span(self.span.of_part(name))
    }

    fn with_span(&self, span: SpanId) -> Self {
        Self {
            span,
            parent: Some(self.span),
            ..self.clone()
        }
    }

    pub fn traceparent(&self) -> String {
        render_traceparent(self.id, self.span, self.is_sampled)
    }
}

/// A trace as it is stored with work that continues later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredTrace {
    pub traceparent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl StoredTrace {
    pub fn of(trace: &Trace) -> Self {
        Self {
            traceparent: trace.traceparent(),
            parent: trace.parent.map(|parent| render_hex(&parent.0)),
            tracestate: trace.state.as_ref().map(|state| state.to_string()),
        }
    }

    /// `None`: the stored text is not a trace.
    pub fn find_trace(&self) -> Option<Trace> {
        let stored = parse_parent(Some(&self.traceparent), self.tracestate.as_deref())?;
        Some(Trace {
            id: stored.id,
            span: stored.span,
            parent: self.parent.as_deref().and_then(parse_span),
            is_sampled: stored.is_sampled,
            state: stored.state,
        })
    }
}

/// The span of an outgoing call. `None`: the task has no trace.
pub fn begin_call(host: &dyn Host) -> Option<Trace> {
    current().map(|trace| trace.child(host))
}

/// The headers that carry a call's trace.
pub fn headers_of(call: Option<&Trace>) -> Vec<(&'static str, String)> {
    let Some(call) = call else {
        return Vec::new();
    };
    let mut headers = vec![(TRACEPARENT, call.traceparent())];
    if let Some(state) = &call.state {
        headers.push((TRACESTATE, state.to_string()));
    }
    headers
}

/// A task that runs in a trace.
pub struct TracedTask<F> {
    trace: Option<Rc<Trace>>,
    task: Pin<Box<F>>,
}

/// Runs a future in a trace: everything that the future polls is in the trace, too.
pub fn run_in<F: Future>(trace: Option<Rc<Trace>>, task: F) -> TracedTask<F> {
    TracedTask {
        trace,
        task: Box::pin(task),
    }
}

impl<F: Future> Future for TracedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let trace = self.trace.clone();
        let before = CURRENT.replace(trace);
        let outcome = self.task.as_mut().poll(context);
        CURRENT.set(before);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::json;
    use crate::testing::{FixedHost, wait_for};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn trace() -> Trace {
        let parent = parse_parent(Some(PARENT), Some("a=1"));
        Trace::of_request(parent, None, &FixedHost::default()).unwrap()
    }

    #[test]
    fn no_trace_starts_without_an_exporter() {
        assert_eq!(Trace::of_request(None, None, &FixedHost::default()), None);
    }

    #[test]
    fn each_call_is_a_span_in_its_callers_trace() {
        // Other random bytes than those of the trace.
        let host = FixedHost::later();
        let trace = Rc::new(trace());
        assert_eq!(trace.parent.unwrap().0[..2], [0x00, 0xf0]);
        let headers = || headers_of(begin_call(&host).as_ref());
        let calls = async { [headers(), headers()] };
        let [first, second] = wait_for(run_in(Some(Rc::clone(&trace)), calls));
        assert_ne!(first, second);
        let prefix = "00-4bf92f3577b34da6a3ce929d0e0e4736-";
        assert!(first[0].1.starts_with(prefix) && first[0].1.ends_with("-01"));
        assert!(!first[0].1.contains(&trace.traceparent()[36..52]));
        assert_eq!(first[1], (TRACESTATE, "a=1".to_owned()));
        assert!(headers().is_empty());
        let stored = json::encode(&StoredTrace::of(&trace)).unwrap();
        let stored: StoredTrace = json::decode(&stored).unwrap();
        assert_eq!(stored.find_trace(), Some((*trace).clone()));
    }

    #[test]
    fn the_trace_is_current_whenever_its_task_is_polled() {
        let mut polls = 0;
        let outer = Rc::new(trace());
        let inner = Rc::new(outer.part("inner"));
        let within = poll_fn(|_| {
            polls += 1;
            match polls {
                1 => Poll::Pending,
                _ => Poll::Ready(current()),
            }
        });
        let within = run_in(Some(Rc::clone(&inner)), within);
        let task = async { (within.await, current()) };
        let mut task = pin!(run_in(Some(Rc::clone(&outer)), task));
        let mut context = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(current(), None);
        let seen = (Some(Rc::clone(&inner)), Some(Rc::clone(&outer)));
        assert_eq!(task.poll(&mut context), Poll::Ready(seen));
        assert_eq!(inner.parent, Some(outer.span));
        assert_eq!(outer.part("inner"), *inner);
        assert_ne!(outer.part("other").span, inner.span);
    }
}
