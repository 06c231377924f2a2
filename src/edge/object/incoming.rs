//! A request over HTTP, from its arrival to its answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use worker::web_sys;

use crate::edge::cors;
use crate::edge::http::{self, HttpRequest, ResponseResult};
use access::{CorsPolicy, Policy};
use api::mcp::{Outbox, accepts_stream};
use base::trace::Trace;

pub struct Incoming {
    pub head: HttpRequest,
    /// The body, if it is short: it was read before.
    pub body: Cell<Option<Vec<u8>>>,
    /// The rights that a class that extends this one gives the request, as JSON.
    pub granted: Option<String>,
    pub shared: CorsPolicy,
    /// The trace that the answer names. An MCP message may name another one than its request.
    trace: RefCell<Option<Rc<Trace>>>,
    /// The messages before the answer. `None`: nothing is sent before the answer.
    pub outbox: Option<Rc<Outbox>>,
}

impl Incoming {
    pub fn new(
        request: web_sys::Request,
        body: Option<Vec<u8>>,
        granted: Option<String>,
        policy: &Policy,
    ) -> Self {
        let shared = cors::find(policy, &request);
        let head = HttpRequest::new(request);
        let reads_stream =
            head.url.contains("/mcp") && accepts_stream(head.find_header("accept").as_deref());
        Self {
            outbox: reads_stream.then(Rc::default),
            head,
            body: Cell::new(body),
            granted,
            shared,
            trace: RefCell::default(),
        }
    }

    /// Whether the request is for a chat turn or its lease.
    pub fn is_chat(&self) -> bool {
        self.head.url.contains("/chat")
    }

    pub fn trace(&self) -> Option<Rc<Trace>> {
        self.trace.borrow().clone()
    }

    pub fn set_trace(&self, trace: Option<Rc<Trace>>) {
        self.trace.replace(trace);
    }

    /// Adds the headers of every answer.
    pub fn finish(&self, answer: web_sys::Response) -> ResponseResult {
        // The answer that opens a socket accepts no further headers.
        if let Some(trace) = self.trace()
            && answer.status() != 101
        {
            http::name_trace(&answer, &trace)?;
        }
        cors::mark(answer, &self.shared)
    }
}
