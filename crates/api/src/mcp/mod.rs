//! The Model Context Protocol: an agent's memory and tools for any MCP client. The
//! transport is streamable HTTP without sessions: one POST, one answer.
//!
//! Invariant: no method does more than the operation behind it. Each method checks the rule
//! of that operation ([`Scope`]). If a caller may use none of a method's operations, the
//! method is neither announced nor served.
//!
//! [`message`] implements JSON-RPC, [`revision`] the revisions of the protocol and their
//! headers. [`tools`], [`resources`], [`prompts`] and [`completion`] serve the methods.
//! [`offered`] adds the resources and prompts of a class that extends this one.
//! [`exchange`] is the communication between client and tool during a call, and
//! [`approval`] the state of a call that waits for the client. [`subscriptions`] reports
//! changes to the Worker that holds a stream open.

mod answering;
mod approval;
mod capabilities;
mod clients;
mod completion;
mod content;
mod exchange;
mod level;
mod message;
mod offered;
mod outbox;
mod outcome;
mod page;
mod prompts;
mod resources;
mod revision;
mod scope;
mod shares;
mod subscriptions;
mod tools;
mod uri;

pub use self::answering::Answering;
use self::capabilities::Capabilities;
pub use self::clients::Clients;
use self::exchange::Exchange;
use self::level::Level;
use self::message::{Request, RpcError, RpcMessage, method_not_found};
pub use self::outbox::Outbox;
pub use self::outcome::McpAnswer;
use self::outcome::{Form, Outcome};
pub use self::revision::McpHeaders;
use self::revision::Revision;
use self::scope::Scope;
use super::operation::Agent;
use super::tracing::find_parent;
use access::Caller;
use base::host::Host;
use base::json::json;
use base::trace::sampler::Sampler;
use base::trace::{TRACEPARENT, TRACESTATE, Trace};

/// Describes this server to a model.
const INSTRUCTIONS: &str = "The durable memory of one agent. The tools read and write its blocks, \
                            and `search` searches conversations. The resources are the blocks and \
                            their documents. The prompt `system` is the memory as a system prompt.";

/// A request as received.
pub struct McpRequest<'a> {
    /// `?sessionId=`: the session whose memory is used in addition to the agent's.
    pub session_id: Option<String>,
    pub headers: McpHeaders<'a>,
    pub body: Vec<u8>,
    pub clients: &'a Clients,
    /// Collects the messages that precede the answer, if the client accepts an event
    /// stream.
    pub outbox: Option<&'a Outbox>,
}

/// The trace that an MCP message itself names, if it differs from its request's trace.
pub fn trace_of_message(
    body: &[u8],
    request: Option<&Trace>,
    caller: &Caller,
    sampler: Option<Sampler>,
    host: &dyn Host,
) -> Option<Trace> {
    let (parent, state) = find_trace(body)?;
    let named = find_parent(caller, Some(&parent), state.as_deref())?;
    // In the same trace, the request's own span is the closer parent.
    if request.is_some_and(|trace| trace.id == named.id) {
        return None;
    }
    Trace::of_request(Some(named), sampler, host)
}

/// The `traceparent` and the `tracestate` in a message's `_meta`. They are the client's
/// own; those of the headers may be a proxy's.
fn find_trace(body: &[u8]) -> Option<(String, Option<String>)> {
    let is_named = body
        .windows(TRACEPARENT.len())
        .any(|part| part == TRACEPARENT.as_bytes());
    if !is_named {
        return None;
    }
    let Ok(RpcMessage::Request(request)) = RpcMessage::parse(body) else {
        return None;
    };
    let named = |name| Some(request.meta(name)?.as_str()?.to_owned());
    Some((named(TRACEPARENT)?, named(TRACESTATE)))
}

/// Whether a client that sends this `accept` header reads an event stream.
pub fn accepts_stream(accept: Option<&str>) -> bool {
    accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("text/event-stream"))
}

/// Handles one request.
pub async fn answer(agent: &Agent<'_>, request: McpRequest<'_>) -> McpAnswer {
    let McpRequest {
        session_id,
        headers,
        body,
        clients,
        outbox,
    } = request;
    let Some(form) = headers.form() else {
        let message = "The answer is JSON or an event stream: `Accept` must include \
                       `application/json` or `text/event-stream`.";
        return refuse(Form::Json, None, &RpcError::request(message), 406);
    };
    if !headers.is_json() {
        let message = "Messages are JSON: send them with `content-type: application/json`.";
        return refuse(form, None, &RpcError::request(message), 415);
    }
    let incoming = match RpcMessage::parse(&body) {
        Ok(incoming) => incoming,
        Err(error) => return refuse(form, None, &error, 400),
    };
    drop(body);
    let request = match incoming {
        RpcMessage::Request(request) => request,
        RpcMessage::Answer(id, result) => {
            clients.accept_answer(agent, &id, result.as_deref());
            return empty(202);
        }
        // Nothing here depends on notifications.
        RpcMessage::Notification => return empty(202),
    };
    let id = request.id.clone();
    let revision = match headers.check(&request) {
        Ok(revision) => revision,
        Err(error) => return refuse(form, Some(&id), &error, 400),
    };
    let exchange = Exchange {
        revision,
        session: headers.session,
        clients,
        outbox,
    };
    let answer = match serve(agent, session_id, &exchange, &request).await {
        Ok(outcome) => {
            let result = revision.finish(&outcome.json, outcome.is_list, outcome.is_question);
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            McpAnswer {
                indexing_continues: outcome.indexing_continues,
                session: outcome.session,
                is_poll: subscriptions::repeats(&request),
                ..form.answer(200, body)
            }
        }
        Err(error) => {
            let status = revision.status_of(&error);
            refuse(form, Some(&id), &error, status)
        }
    };
    match outbox.filter(|outbox| outbox.has_started()) {
        Some(outbox) => end_stream(outbox, form, answer),
        None => answer,
    }
}

/// Sends the answer as the last event of the stream.
fn end_stream(outbox: &Outbox, form: Form, answer: McpAnswer) -> McpAnswer {
    let body = answer.body.into_string();
    match form {
        Form::Json => outbox.finish(&body),
        Form::Events => outbox.finish_with(&body),
    }
    McpAnswer {
        body: String::new().into(),
        ..answer
    }
}

async fn serve(
    agent: &Agent<'_>,
    session_id: Option<String>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    let scope = Scope::find(agent, session_id)?;
    let method = request.method.as_str();
    let revision = exchange.revision;
    match (revision, method) {
        (Revision::Handshake, "initialize") => {
            let requested = request.text("protocolVersion")?;
            let can = Capabilities::read(request.capabilities());
            let hello = Outcome::new(&json!({
                "protocolVersion": revision::choose(requested),
                "capabilities": scope.capabilities(),
                "serverInfo": revision::server_info(),
                "instructions": INSTRUCTIONS,
            }))?;
            Ok(Outcome {
                session: Some(can.to_session(agent.host)),
                ..hello
            })
        }
        (Revision::Handshake, "ping") => Outcome::new(&json!({})),
        (Revision::Handshake, "logging/setLevel") => {
            scope.permit_tools()?;
            let level = Level::parse(request.text("level")?)?;
            if let Some(session) = exchange.session() {
                exchange.clients.set_level(session, level);
            }
            Outcome::new(&json!({}))
        }
        (Revision::Stateless, "server/discover") => Outcome::list(&json!({
            "supportedVersions": revision::SUPPORTED,
            "capabilities": scope.capabilities(),
            "instructions": INSTRUCTIONS,
        })),
        (_, "tools/list") => tools::list(&scope, exchange, request).await,
        (_, "tools/call") => tools::call(&scope, exchange, request).await,
        (_, "resources/list") => resources::list(&scope, request).await,
        (_, "resources/templates/list") => resources::list_templates(&scope, request).await,
        (_, "resources/read") => resources::read(&scope, exchange, request).await,
        (Revision::Handshake, "resources/subscribe") => {
            subscriptions::change(&scope, exchange, request, true).await
        }
        (Revision::Handshake, "resources/unsubscribe") => {
            subscriptions::change(&scope, exchange, request, false).await
        }
        (_, subscriptions::POLL) => subscriptions::poll(&scope, exchange, request).await,
        (_, "prompts/list") => prompts::list(&scope, request).await,
        (_, "prompts/get") => prompts::get(&scope, exchange, request).await,
        (_, "completion/complete") => completion::complete(&scope, request).await,
        _ => Err(method_not_found(method)),
    }
}

fn refuse(form: Form, id: Option<&str>, error: &RpcError, status: u16) -> McpAnswer {
    let mut body = json!({"code": error.code, "message": error.message});
    if let (Some(data), Some(fields)) = (&error.data, body.as_object_mut()) {
        fields.insert("data".to_owned(), data.clone());
    }
    let id = id.unwrap_or("null");
    McpAnswer {
        failure: error.failure.clone(),
        ..form.answer(
            status,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{body}}}"#),
        )
    }
}

fn empty(status: u16) -> McpAnswer {
    Form::Json.answer(status, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracing::trace_of_refused;
    use access::TokenScope;
    use base::testing::FixedHost;
    use base::trace::header::render_hex;

    #[test]
    fn a_valid_traceparent_in_a_message_is_accepted() {
        let body = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
        };
        let find = |params: &str| find_trace(body(params).as_bytes());
        let named = |state: Option<&str>| Some(("00-a".to_owned(), state.map(str::to_owned)));
        assert_eq!(find(r#"{"_meta":{"traceparent":"00-a"}}"#), named(None));
        assert_eq!(
            find(r#"{"_meta":{"tracestate":"v=1","traceparent":"00-a"},"name":"x"}"#),
            named(Some("v=1"))
        );
        for params in [
            "{}",
            r#"{"_meta":{}}"#,
            r#"{"traceparent":"00-a"}"#,
            r#"{"_meta":"traceparent"}"#,
            r#"{"_meta":{"traceparent":7}}"#,
            r#"{"arguments":{"_meta":{"traceparent":"00-a"}}}"#,
            r#"["traceparent"]"#,
        ] {
            assert_eq!(find(params), None, "{params}");
        }
        assert_eq!(find_trace(b"traceparent"), None);
        assert_eq!(find_trace(b""), None);
    }

    #[test]
    fn a_message_trace_applies_unless_the_request_has_one() {
        const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let host = FixedHost::default();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"traceparent":"{PARENT}"}}}}}}"#
        );
        let named = |request: Option<&Trace>, caller: &Caller| {
            trace_of_message(body.as_bytes(), request, caller, None, &host)
                .map(|trace| render_hex(&trace.id.0))
        };
        assert_eq!(
            named(None, &Caller::Owner).as_deref(),
            Some("0af7651916cd43dd8448eb211c80319c")
        );
        let same = trace_of_refused(None, Some(PARENT), &host);
        assert_eq!(named(same.as_ref(), &Caller::Owner), None);
        assert_eq!(named(None, &Caller::Scoped(TokenScope::default())), None);
    }

    #[test]
    fn the_accept_header_decides_whether_an_answer_may_stream() {
        for accept in [
            "text/event-stream",
            "application/json, Text/Event-Stream;q=0.9",
        ] {
            assert!(accepts_stream(Some(accept)), "{accept}");
        }
        assert!(!accepts_stream(Some("application/json")) && !accepts_stream(None));
    }
}
