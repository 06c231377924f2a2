//! Messages of the Model Context Protocol: a request's headers in, an answer out.

use worker::web_sys;

use super::http::{self, ResponseResult};
use super::storage::Statements;
use super::text::Sent;
use api::mcp::{self, McpAnswer, McpHeaders, McpRequest};
use api::operation::Agent;
use base::budget::Reservation;
use base::error::Result;

/// An answer, and the memory that it holds until it is sent.
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
) -> Result<McpReply> {
    let names = [
        "accept",
        "content-type",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ];
    let told = names.map(|name| http::find_header(request, name));
    let [accept, content_type, version, method, name] =
        told.each_ref().map(|value| value.as_deref());
    let asked = McpRequest {
        session_id,
        headers: McpHeaders {
            accept,
            content_type,
            version,
            method,
            name,
        },
        body,
    };
    let mut answer = mcp::answer(agent, asked).await;
    // A tool may have written, so the answer is sent in any case.
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
            ..
        } = self.answer;
        if let Some(failure) = &failure {
            http::log(failure);
        }
        let kind = [("content-type", content_type)];
        http::answer(status, &self.body, cost, self.reservation, &kind)
    }
}
