//! Messages of the Model Context Protocol: converts a request's headers, and sends the
//! answer. The answer is an event stream as soon as a tool reports progress or requests
//! input.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use worker::web_sys;

use super::http::{self, ResponseResult};
use super::storage::Statements;
use super::stream::watched_at;
use super::text::Sent;
use api::mcp::{self, Clients, McpAnswer, McpHeaders, McpRequest, Outbox};
use api::operation::Agent;
use base::budget::Reservation;
use base::error::Result;
use base::outbound::LocalBoxFuture;

/// An answer, and the memory that it reserves until it is sent.
pub struct McpReply {
    pub answer: McpAnswer,
    body: Sent,
    reservation: Reservation,
}

/// Answers a request.
pub async fn answer(
    agent: &Agent<'_>,
    session_id: Option<String>,
    request: &web_sys::Request,
    body: Vec<u8>,
    clients: &Clients,
    outbox: Option<&Outbox>,
) -> Result<McpReply> {
    let names = [
        "accept",
        "content-type",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
    ];
    let told = names.map(|name| http::find_header(request, name));
    let [accept, content_type, version, method, name, session] =
        told.each_ref().map(|value| value.as_deref());
    let asked = McpRequest {
        session_id,
        headers: McpHeaders {
            accept,
            content_type,
            version,
            method,
            name,
            session,
        },
        body,
        clients,
        outbox,
    };
    let mut answer = mcp::answer(agent, asked).await;
    // A tool may have written, so the answer is always sent.
    let body = Sent::of(std::mem::take(&mut answer.body));
    let reservation = http::reserve_answer(&body, false)?;
    Ok(McpReply {
        answer,
        body,
        reservation,
    })
}

impl McpReply {
    pub fn respond(self, cost: &Statements) -> ResponseResult {
        let McpAnswer {
            status,
            content_type,
            failure,
            session,
            ..
        } = self.answer;
        if let Some(failure) = &failure {
            http::log(failure);
        }
        let mut headers = vec![("content-type", content_type)];
        headers.extend(
            session
                .as_deref()
                .map(|session| ("mcp-session-id", session)),
        );
        http::answer(status, &self.body, cost, self.reservation, &headers)
    }
}

/// Whether the client of this request accepts an event stream.
pub fn takes_stream(request: &web_sys::Request) -> bool {
    let accept = http::find_header(request, "accept");
    accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("text/event-stream"))
}

/// An answer in progress, and the messages before it.
pub struct Answering {
    pub answer: LocalBoxFuture<'static, ResponseResult>,
    pub outbox: Rc<Outbox>,
    is_over: bool,
}

impl Answering {
    pub fn new(answer: LocalBoxFuture<'static, ResponseResult>, outbox: Rc<Outbox>) -> Self {
        Self {
            answer,
            outbox,
            is_over: false,
        }
    }

    /// The answer, if it is complete before any message. `None`: the answer is a stream.
    pub async fn begin(&mut self) -> Option<ResponseResult> {
        poll_fn(|context| match self.answer.as_mut().poll(context) {
            Poll::Ready(answer) if self.outbox.has_begun() => {
                self.is_over = true;
                drop(answer);
                Poll::Ready(None)
            }
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if self.outbox.has_begun() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// The next events. The work continues only while the client reads.
    async fn next(&mut self) -> Option<String> {
        poll_fn(|context| {
            let waiting = self.outbox.take();
            if waiting.is_some() || self.is_over {
                return Poll::Ready(waiting);
            }
            // The last event is the answer, which is in the outbox, too.
            self.is_over = self.answer.as_mut().poll(context).is_ready();
            match self.outbox.take() {
                None if !self.is_over => Poll::Pending,
                events => Poll::Ready(events),
            }
        })
        .await
    }

    /// The body of a streamed answer. If the client disconnects, the work ends.
    pub fn into_stream(self) -> Result<JsValue> {
        watched_at(0, self, |mut answering| async move {
            let events = answering.next().await?;
            Some((Uint8Array::from(events.as_bytes()), answering))
        })
    }
}
