//! Messages of the Model Context Protocol: converts a request's headers, and sends the
//! answer. The answer is an event stream as soon as a tool reports progress or requests
//! input.

use js_sys::Uint8Array;
use wasm_bindgen::JsValue;

use super::http::{self, HttpRequest, ResponseResult};
use super::storage::Statements;
use super::stream::watched_at;
use super::text::Sent;
use api::mcp::{self, Answering, Clients, McpAnswer, McpHeaders, McpRequest, Outbox};
use api::operation::Agent;
use base::budget::Reservation;
use base::error::Result;

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
    head: &HttpRequest,
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
    let values = names.map(|name| head.find_header(name));
    let [accept, content_type, version, method, name, session] =
        values.each_ref().map(|value| value.as_deref());
    let request = McpRequest {
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
    let mut answer = mcp::answer(agent, request).await;
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

/// The body of a streamed answer. If the client disconnects, the work ends.
pub fn into_stream(answering: Answering<ResponseResult>) -> Result<JsValue> {
    watched_at(0, answering, |mut answering| async move {
        let events = answering.next().await?;
        Some((Uint8Array::from(events.as_bytes()), answering))
    })
}
