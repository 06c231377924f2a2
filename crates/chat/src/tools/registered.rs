//! Tools that the operator registered: a service binding, a URL, or a tool of a server of
//! the Model Context Protocol. A tool is called with a POST, and the model reads any
//! answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::address::tool_address::{LIMITS, ToolAddress, ToolLimits};
use crate::address::tool_headers::{ResolvedHeaders, ToolHeaders};
use crate::tools::exchange::{ToolExchange, UserQuestions, asks_for_input};
use crate::tools::input::question::{MAX_ROUNDS, read_question};
use crate::tools::mcp::call::call_server_tool;
use crate::tools::mcp::server::ServerTool;
use crate::turn::{CallState, TurnCall};
use base::error::Result;
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, Tree};
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, OWN_CLASS, Outbound, OutboundRequest,
    WholeResponse, send_and_read,
};
use conversation::log::note::OpenQuestion;
use memory::Memory;
use models::{ToolDefinition, sse};

/// The most tools per agent: each model call sends all of them.
pub const MAX_TOOLS: i64 = 128;

/// A header with an id that is unique per call of a tool. Each call is sent only once, but a
/// gateway on the way may repeat it.
const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// The path of the request by which the class decides whether the user must approve a call: see
/// `OwnToolbox` in packages/session-agent/src/worker/tools.ts.
const APPROVAL_PATH: &str = "approval";

/// The limits of that request. The class itself times out after 10 seconds. Its answer is one word.
const APPROVAL_LIMITS: CallLimits = CallLimits {
    silence_ms: 15_000,
    total_ms: 15_000,
    max_bytes: 64,
    ..LIMITS
};

/// Bytes of the hash that distinguishes tools by their addresses.
const FINGERPRINT_BYTES: usize = 16;

const EVENT_STREAM: &str = "text/event-stream";

#[derive(Clone, Debug)]
pub struct RegisteredTool {
    pub definition: ToolDefinition,
    pub at: ToolAddress,
    pub needs_approval: bool,
    pub headers: ToolHeaders,
    pub limits: ToolLimits,
    /// The server's tool, if a server listed it.
    pub of_server: Option<ServerTool>,
}

impl RegisteredTool {
    /// Checks that the tool's address is allowed, and that it may receive its secrets.
    pub fn check_address(&self, outbound: &dyn Outbound) -> Result<ResolvedHeaders> {
        self.at.check_address(outbound, &self.headers, "url")
    }

    /// A hash of the tool's address and headers, and of its server's description. The hash
    /// identifies the tool but doesn't reveal its address.
    pub fn fingerprint(&self) -> String {
        let (kind, address, path) = match &self.at {
            ToolAddress::Service { binding, path } => ("service", binding, path.as_str()),
            ToolAddress::Url(url) => ("url", url, ""),
        };
        let headers = self.headers.to_json();
        let headers = headers.map(|json| format!(" {json}")).unwrap_or_default();
        let of_server = match &self.of_server {
            Some(tool) => format!(" {path} {}", tool.digest),
            None => String::new(),
        };
        let identity = format!("{kind} {address}{headers}{of_server}");
        let mut digits = format!("{:x}", Sha256::digest(identity));
        digits.truncate(2 * FINGERPRINT_BYTES);
        digits
    }

    /// The fingerprint that a call of the tool stores in the step in which the model made it. A
    /// server may change the descriptions of its tools; only the operator changes the operator's
    /// definition.
    pub fn fingerprint_of_call(&self) -> Option<String> {
        self.of_server.as_ref().map(|_| self.fingerprint())
    }

    /// Whether a class that extends this one implements the tool.
    pub fn is_of_class(&self) -> bool {
        matches!(&self.at, ToolAddress::Service { binding, .. } if binding == OWN_CLASS)
    }

    /// Whether the class lets this call of its tool run without the user's approval. Any answer but
    /// `false` requires approval.
    pub async fn class_skips_approval(
        &self,
        memory: &Memory<'_>,
        session_id: Option<&Id>,
        arguments: &JsonObject,
        key: &str,
    ) -> bool {
        let nothing = ToolExchange::default();
        let Ok(body) = self.write_call(memory, session_id, arguments, &nothing) else {
            return false;
        };
        if !self.is_of_class() {
            return false;
        }
        let call = OutboundRequest {
            purpose: CallPurpose::Tool,
            endpoint: Endpoint::Service {
                binding: OWN_CLASS.to_owned(),
                path: APPROVAL_PATH.to_owned(),
            },
            headers: vec![(IDEMPOTENCY_HEADER.to_owned(), key.to_owned())],
            body,
            limits: APPROVAL_LIMITS,
        };
        let answer = send_and_read(memory.outbound, call).await;
        answer.is_ok_and(|answer| answer.status == 200 && answer.body == b"false")
    }

    /// Makes a call of a turn. A failure is text for the model. `key` is unique to this call.
    /// Without `may_ask`, the turn has nobody who could answer the tool's questions.
    pub async fn call_in_turn(
        &self,
        memory: &Memory<'_>,
        session_id: Option<&Id>,
        call: &TurnCall,
        key: &str,
        may_ask: bool,
    ) -> CallState {
        let name = &self.definition.name;
        let open = call
            .answered
            .as_ref()
            .and_then(|question| question.open.as_ref());
        let round = open.map_or(0, |open| open.round);
        let responses = open.and_then(|open| open.answers.as_ref());
        let responses = responses.and_then(|answers| json::decode_tree(answers.as_str()).ok());
        let exchange = ToolExchange {
            responses: responses.as_ref(),
            state: open.and_then(|open| open.state.as_deref()),
            notify: None,
            asks: if may_ask {
                UserQuestions::FormsAndPages
            } else {
                UserQuestions::Nothing
            },
            round,
        };
        let state = self
            .call_with(memory, session_id, &call.arguments, key, &exchange)
            .await;
        let result = match &state {
            CallState::Done { output, .. } if asks_for_input(&state) => output,
            _ => return state,
        };
        if !may_ask {
            return CallState::failed(format!(
                "`{name}` asks for input, and this turn has nobody to ask. Call the tool in a chat \
                 turn, or over the Model Context Protocol."
            ));
        }
        if round >= MAX_ROUNDS {
            return CallState::failed(format!(
                "`{name}` was not carried out: it asked the user more than {MAX_ROUNDS} times."
            ));
        }
        let next = OpenQuestion {
            state: None,
            round: round + 1,
            fingerprint: Some(self.fingerprint()),
            skips_approval: call.skips_approval,
            answers: None,
        };
        let server = self.of_server.as_ref().map(|tool| tool.server.as_str());
        match read_question(memory.outbound, result, server, next) {
            Ok(question) => CallState::AwaitsInput(Box::new(question)),
            Err(what) => CallState::failed(format!(
                "`{name}` was not carried out: it asks the user for input in a way that can't be \
                 shown: {what}."
            )),
        }
    }

    /// Calls the tool, for a caller that receives its notifications and its requests for input. A
    /// failure is text for the model.
    pub async fn call_with(
        &self,
        memory: &Memory<'_>,
        session_id: Option<&Id>,
        arguments: &JsonObject,
        key: &str,
        exchange: &ToolExchange<'_>,
    ) -> CallState {
        // The settings may have changed since the tool was defined.
        let resolved = match self.check_address(memory.outbound) {
            Ok(resolved) => resolved,
            Err(error) => return CallState::failed(error.into_message()),
        };
        let headers = vec![(IDEMPOTENCY_HEADER.to_owned(), key.to_owned())];
        match &self.of_server {
            Some(tool) => {
                let limits = self.limits.of_call();
                let name = &self.definition.name;
                call_server_tool(
                    memory,
                    (name, tool),
                    arguments,
                    (&self.at, limits),
                    (resolved, headers),
                    exchange,
                )
                .await
            }
            None => {
                let Ok(body) = self.write_call(memory, session_id, arguments, exchange) else {
                    let name = &self.definition.name;
                    let reason = format!("The call of `{name}` could not be serialized.");
                    return CallState::failed(reason);
                };
                self.post(memory, body, resolved, headers, exchange).await
            }
        }
    }

    /// The body of a call by POST.
    fn write_call(
        &self,
        memory: &Memory<'_>,
        session_id: Option<&Id>,
        arguments: &JsonObject,
        exchange: &ToolExchange<'_>,
    ) -> Result<String> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ClassCall<'a> {
            name: &'a str,
            arguments: &'a JsonObject,
            agent: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            input_responses: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            request_state: Option<&'a str>,
        }
        json::encode(&ClassCall {
            name: &self.definition.name,
            arguments,
            agent: memory.agent,
            session_id: session_id.map(Id::as_str),
            input_responses: exchange.responses,
            request_state: exchange.state,
        })
    }

    /// Calls a tool by POST.
    async fn post(
        &self,
        memory: &Memory<'_>,
        body: String,
        resolved: ResolvedHeaders,
        mut headers: Vec<(String, String)>,
        exchange: &ToolExchange<'_>,
    ) -> CallState {
        let name = &self.definition.name;
        headers.extend(resolved.headers.iter().cloned());
        let call = OutboundRequest {
            purpose: CallPurpose::Tool,
            endpoint: self.at.to_endpoint(),
            headers,
            body,
            limits: self.limits.of_call(),
        };
        match send_and_listen(memory.outbound, call, exchange, &resolved).await {
            Ok(answer) => read_answer(name, answer, &resolved),
            Err(failure) => {
                CallState::failed(format!("`{name}` did not answer: {}.", failure.reason()))
            }
        }
    }
}

/// Sends a call and reads its answer. An event stream may report the tool's progress before its
/// result.
async fn send_and_listen(
    outbound: &dyn Outbound,
    call: OutboundRequest,
    exchange: &ToolExchange<'_>,
    sent: &ResolvedHeaders,
) -> Result<WholeResponse, CallFailure> {
    let mut answer = outbound.send(call).await?;
    let is_stream = answer.content_type == EVENT_STREAM && (200..300).contains(&answer.status);
    let mut events = is_stream.then(sse::Parser::default);
    let mut body = Vec::new();
    while let Some(bytes) = answer.body.next().await? {
        let received = events.as_mut().map(|parser| parser.push(&bytes));
        body.extend_from_slice(&bytes);
        let Some(Ok(received)) = received else {
            // A line that is too long is not an event: the body is the answer.
            events = None;
            continue;
        };
        for event in received {
            if let Some(result) = receive(&event.data, exchange, sent) {
                return Ok(of_result(&result));
            }
        }
    }
    let last = events.and_then(|mut parser| parser.end().ok().flatten());
    let result = last.and_then(|event| receive(&event.data, exchange, sent));
    Ok(match result {
        Some(result) => of_result(&result),
        None => WholeResponse {
            status: answer.status,
            content_type: answer.content_type,
            body,
        },
    })
}

fn of_result(result: &RawValue) -> WholeResponse {
    WholeResponse {
        status: 200,
        content_type: "application/json".to_owned(),
        body: result.get().as_bytes().to_vec(),
    }
}

/// Reads one event of a tool's stream. Returns a result, and passes a notification on.
fn receive(
    data: &str,
    exchange: &ToolExchange<'_>,
    sent: &ResolvedHeaders,
) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct ToolLine {
        method: Option<String>,
        #[serde(default)]
        params: Tree,
        result: Option<Box<RawValue>>,
    }
    if !data.trim_start().starts_with('{') {
        return None;
    }
    let frame: ToolLine = json::decode(data).ok()?;
    if let (Some(method), Some(notify)) = (&frame.method, exchange.notify) {
        let shown = sent.strip_json(json::text(&frame.params.0));
        if let Ok(params) = json::decode_tree(&shown) {
            notify(method, &params);
        }
    }
    frame.result
}

fn read_answer(name: &str, answer: WholeResponse, sent: &ResolvedHeaders) -> CallState {
    let WholeResponse {
        status,
        content_type,
        body,
    } = answer;
    let Ok(text) = String::from_utf8(body) else {
        return CallState::failed(format!("`{name}` returned bytes that are not text."));
    };
    let text = sent.strip_json(text);
    if !(200..300).contains(&status) {
        let reason = text.trim();
        let reason = reason
            .get(..reason.floor_char_boundary(2_000))
            .unwrap_or_default();
        return CallState::failed(format!("`{name}` failed with status {status}: {reason}"));
    }
    let is_json = content_type == "application/json" || content_type.ends_with("+json");
    if is_json && json::decode::<&RawValue>(&text).is_ok() {
        // A JSON string is read as its text.
        return match json::decode::<String>(&text) {
            Ok(output) => done(output, false),
            Err(_) => done(text, true),
        };
    }
    done(text, false)
}

fn done(output: String, is_json: bool) -> CallState {
    CallState::done(output, is_json)
}

/// The tools that are deployed for every agent.
#[derive(Default)]
pub struct DeployedTools(pub Vec<RegisteredTool>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_response_is_text_or_json_and_a_failure_is_reported() {
        let sent = ResolvedHeaders::default();
        let read_bytes = |status, kind: &str, body: &[u8]| {
            let answer = WholeResponse {
                status,
                content_type: kind.to_owned(),
                body: body.to_vec(),
            };
            read_answer("t", answer, &sent)
        };
        let read = |status, kind, body: &str| read_bytes(status, kind, body.as_bytes());
        assert_eq!(read(200, "text/plain", "{}"), done("{}".to_owned(), false));
        assert_eq!(
            read(200, "application/json", "{\"a\":1.0}"),
            done("{\"a\":1.0}".to_owned(), true)
        );
        assert_eq!(
            read(200, "application/json", "\"a\\n\""),
            done("a\n".to_owned(), false)
        );
        assert_eq!(
            read(200, "application/json", "{"),
            done("{".to_owned(), false)
        );
        assert_eq!(
            read(500, "text/plain", " no \n"),
            CallState::failed("`t` failed with status 500: no")
        );
        assert!(matches!(
            read_bytes(200, "", &[0xFF]),
            CallState::Failed { .. }
        ));
    }
}
