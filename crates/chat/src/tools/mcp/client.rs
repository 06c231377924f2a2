//! A client of one server: streamable HTTP, each message a POST.
//!
//! The client first requests the server's capabilities in the newest revision. If the server
//! doesn't support that, the client performs a handshake. If the server refuses the handshake, the
//! client continues without one, in the newest revision. If a server assigns a session, each
//! request names it; a session that the server no longer knows is restarted once.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::exchange::{ToolExchange, UserQuestions};
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::oauth::challenge::Challenge;
use crate::tools::mcp::revision::{
    CAPABILITIES, CLIENT_INFO, ENCODED, NEWEST, NEWEST_HANDSHAKE, OLDER_HANDSHAKES, VERSION,
};
use crate::tools::mcp::wire::{ServerMessage, read_message};
use base::json::{self, JsonObject, RawValue, json};
use base::outbound::{
    CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, OutboundResponse, RequestForm,
    read_all,
};
use base::trace;

/// The most pages of one list, and the most tools on them.
const MAX_PAGES: usize = 32;
const MAX_LISTED: usize = 512;

/// The longest cursor of a page, in bytes.
const MAX_CURSOR_BYTES: usize = 4 << 10;

/// The longest id of a session, in bytes.
const MAX_SESSION_BYTES: usize = 512;

/// Limits of the answer to a server's own request, and of a notification.
pub(super) const NOTE_LIMITS: CallLimits = CallLimits {
    wait_ms: 2_000,
    silence_ms: 5_000,
    no_content_ms: None,
    total_ms: 5_000,
    max_bytes: 64 << 10,
};

pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The revision and the session that are used with a server, as its row stores them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerLink {
    /// Empty: not negotiated yet.
    pub revision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

impl ServerLink {
    /// The link without its session, which belongs only to this agent.
    pub fn without_session(self) -> Self {
        Self {
            session: None,
            ..self
        }
    }

    fn newest() -> Self {
        Self {
            revision: NEWEST.to_owned(),
            session: None,
        }
    }

    pub fn is_newest(&self) -> bool {
        self.revision == NEWEST
    }
}

/// A server, its address, and how to call it.
pub struct ServerClient<'a> {
    pub outbound: &'a dyn Outbound,
    pub endpoint: Endpoint,
    /// The headers of each request, with their secrets.
    pub headers: ResolvedHeaders,
    /// The limits of each request.
    pub limits: CallLimits,
    pub link: ServerLink,
    pub last_id: i64,
    /// What the server may ask the caller's user.
    pub asks: UserQuestions,
    /// Whether the server has reported a change of its list of tools.
    pub has_new_list: Cell<bool>,
}

/// The result of a request, and the session that came with it.
struct ServerResult {
    result: Box<RawValue>,
    session: Option<String>,
}

/// A request to a server.
#[derive(Clone, Copy)]
struct ServerRequest<'a> {
    method: &'static str,
    /// An object as JSON.
    params: &'a str,
    /// The name of the tool that is called.
    tool: Option<&'a str>,
    headers: &'a [(String, String)],
}

impl<'a> ServerRequest<'a> {
    fn new(method: &'static str, params: &'a str) -> Self {
        Self {
            method,
            params,
            tool: None,
            headers: &[],
        }
    }
}

impl ServerClient<'_> {
    /// Connects to the server, and reads its list of tools.
    pub async fn open(&mut self) -> Result<Vec<Box<RawValue>>, ServerFailure> {
        if self.discover().await? {
            return self.list().await;
        }
        match self.begin().await {
            Ok(()) => self.list().await,
            Err(refused) if refused.may_be_of_revision() => {
                self.link = ServerLink::newest();
                self.list().await.map_err(|_| refused)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Requests in the newest revision what the server supports; `false`: not this revision.
    async fn discover(&mut self) -> Result<bool, ServerFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Discovered {
            supported_versions: Vec<String>,
        }
        let names_newest = |revisions: &[String]| revisions.iter().any(|named| named == NEWEST);
        let (before, last_id) = (self.link.clone(), self.last_id);
        self.link = ServerLink::newest();
        let outcome = self.ask(ServerRequest::new("server/discover", "{}")).await;
        let is_newest = match outcome {
            Ok(answered) => {
                let read = json::decode::<Discovered>(answered.result.get());
                read.is_ok_and(|found| names_newest(&found.supported_versions))
            }
            Err(ServerFailure::Refused(refusal)) => names_newest(&refusal.supported),
            Err(failure @ (ServerFailure::NoAnswer(_) | ServerFailure::Unauthorized(_))) => {
                self.link = before;
                return Err(failure);
            }
            // Servers of older revisions fail in many ways when they don't know a method.
            Err(_) => false,
        };
        if !is_newest {
            self.link = ServerLink::default();
            // The handshake begins a session, whose ids start again.
            self.last_id = last_id;
        }
        Ok(is_newest)
    }

    /// Reads the list of tools. Reconnects if the server no longer accepts the revision or the
    /// session.
    pub async fn relist(&mut self) -> Result<Vec<Box<RawValue>>, ServerFailure> {
        match self.list().await {
            Err(ServerFailure::SessionLost) => self.open().await,
            Err(failure) if failure.may_be_of_revision() => self.open().await,
            outcome => outcome,
        }
    }

    /// Calls a tool. `headers` are those of this call.
    pub async fn call(
        &mut self,
        tool: &str,
        arguments: &JsonObject,
        headers: &[(String, String)],
        exchange: &ToolExchange<'_>,
    ) -> Result<Box<RawValue>, ServerFailure> {
        let name = Value::from(tool);
        let mut params = format!(r#"{{"name":{name},"arguments":{}"#, arguments.as_str());
        if let Some(responses) = exchange.responses {
            params.push_str(&format!(r#","inputResponses":{responses}"#));
        }
        if let Some(state) = exchange.state {
            params.push_str(&format!(r#","requestState":{}"#, Value::from(state)));
        }
        params.push('}');
        let request = ServerRequest {
            tool: Some(tool),
            headers,
            ..ServerRequest::new("tools/call", &params)
        };
        let outcome = match self.ask(request).await {
            // The server did not run the call.
            Err(ServerFailure::SessionLost) => {
                self.begin().await?;
                self.ask(request).await
            }
            outcome => outcome,
        };
        outcome.map(|answered| answered.result)
    }

    /// Begins a session, or determines the revision of a server without sessions. If this fails,
    /// the link stays as it was, so that a later request tries again.
    async fn begin(&mut self) -> Result<(), ServerFailure> {
        let before = std::mem::take(&mut self.link);
        let outcome = self.shake_hands().await;
        if outcome.is_err() {
            self.link = before;
        }
        outcome
    }

    async fn shake_hands(&mut self) -> Result<(), ServerFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeResult {
            protocol_version: String,
        }
        let params = json!({
            "protocolVersion": NEWEST_HANDSHAKE,
            "capabilities": {},
            "clientInfo": client_info(),
        });
        let params = json::text(&params);
        let answered = self.ask(ServerRequest::new("initialize", &params)).await?;
        let initialized = json::decode::<InitializeResult>(answered.result.get())
            .map_err(|_| ServerFailure::InvalidResponse("specified no revision of the protocol"))?;
        let revision = initialized.protocol_version;
        let has_handshake =
            revision == NEWEST_HANDSHAKE || OLDER_HANDSHAKES.contains(&revision.as_str());
        if !has_handshake && revision != NEWEST {
            let what = "uses an unknown revision of the protocol";
            return Err(ServerFailure::InvalidResponse(what));
        }
        let fits = |session: &String| {
            (1..=MAX_SESSION_BYTES).contains(&session.len())
                && session.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if answered
            .session
            .as_ref()
            .is_some_and(|session| !fits(session))
        {
            let what = "returned a session id that doesn't fit in a header";
            return Err(ServerFailure::InvalidResponse(what));
        }
        self.link = ServerLink {
            revision,
            session: answered.session,
        };
        // A server may answer the handshake in the newest revision, which has none. Each request
        // from here on then carries all that the server needs. With a session, the server waits for
        // this notification.
        if !has_handshake && self.link.session.is_none() {
            return Ok(());
        }
        let note = self.render(None, &ServerRequest::new("notifications/initialized", "{}"));
        let received = self.post(note, &[], NOTE_LIMITS).await?;
        match received.status {
            200..300 => Ok(()),
            status => Err(ServerFailure::Status(status)),
        }
    }

    /// Reads all pages of the list, within the bytes of one answer.
    async fn list(&mut self) -> Result<Vec<Box<RawValue>>, ServerFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            tools: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let mut listed = Vec::new();
        let mut params = "{}".to_owned();
        let mut capacity = self.limits.max_bytes;
        for _ in 0..MAX_PAGES {
            let answered = self.ask(ServerRequest::new("tools/list", &params)).await?;
            let bytes = answered.result.get().len();
            capacity = capacity
                .checked_sub(bytes)
                .ok_or(ServerFailure::InvalidResponse("lists too many tools"))?;
            let page = json::decode::<Page>(answered.result.get())
                .map_err(|_| ServerFailure::InvalidResponse("returned no list for `tools/list`"))?;
            listed.extend(page.tools);
            if listed.len() > MAX_LISTED {
                break;
            }
            let cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            let Some(cursor) = cursor else {
                return Ok(listed);
            };
            if cursor.len() > MAX_CURSOR_BYTES {
                break;
            }
            params = json::text(&json!({"cursor": cursor}));
        }
        Err(ServerFailure::InvalidResponse("lists too many tools"))
    }

    async fn ask(&mut self, request: ServerRequest<'_>) -> Result<ServerResult, ServerFailure> {
        self.last_id += 1;
        let id = self.last_id;
        let body = self.render(Some(id), &request);
        let mut headers = request.headers.to_vec();
        if self.link.is_newest() {
            headers.push(("mcp-method".to_owned(), request.method.to_owned()));
            let tool = request.tool.map(encode_header);
            headers.extend(tool.map(|tool| ("mcp-name".to_owned(), tool)));
        }
        let mut answer = self.post(body, &headers, self.limits).await?;
        if !(200..300).contains(&answer.status) {
            return Err(self.read_refusal(answer, id).await);
        }
        let session = answer.session.take();
        let result = match answer.content_type.as_str() {
            EVENT_STREAM => self.read_events(answer.body.as_mut(), id).await?,
            kind if kind == "application/json" || kind.ends_with("+json") => {
                let bytes = read_all(answer.body.as_mut()).await?;
                match read_message(&to_text(bytes)?, id)? {
                    ServerMessage::Result(result) => result,
                    ServerMessage::Request { .. }
                    | ServerMessage::ListChanged
                    | ServerMessage::Notification => {
                        return Err(ServerFailure::InvalidResponse("returned an empty answer"));
                    }
                }
            }
            _ => {
                let what = "returned neither JSON nor an event stream";
                return Err(ServerFailure::InvalidResponse(what));
            }
        };
        Ok(ServerResult { result, session })
    }

    /// Reads the reason why the server refused a request.
    async fn read_refusal(&self, mut answer: OutboundResponse<'_>, id: i64) -> ServerFailure {
        let status = answer.status;
        let has_session = self.link.session.is_some();
        let challenge = answer.challenge.as_deref().map(Challenge::read);
        let challenge = challenge.unwrap_or_default();
        if status == 401 || (status == 403 && challenge.wants_more_scope()) {
            return ServerFailure::Unauthorized(challenge);
        }
        if status == 404 && has_session {
            return ServerFailure::SessionLost;
        }
        let bytes = read_all(answer.body.as_mut()).await;
        let text = bytes.map_err(ServerFailure::from).and_then(to_text);
        match text.and_then(|text| read_message(&text, id)) {
            // Servers also answer so for a session that they don't know.
            Err(ServerFailure::Refused(refusal))
                if status == 400 && has_session && refusal.names_no_request =>
            {
                ServerFailure::SessionLost
            }
            Err(ServerFailure::Refused(refusal)) if !refusal.message.is_empty() => {
                ServerFailure::Refused(refusal)
            }
            _ => ServerFailure::Status(status),
        }
    }

    /// A message as JSON.
    fn render(&self, id: Option<i64>, request: &ServerRequest<'_>) -> String {
        let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
        let mut params = request.params.to_owned();
        let meta = self.render_meta();
        if !meta.is_empty() {
            let meta = Value::Object(meta);
            let rest = params.strip_prefix('{').unwrap_or("}");
            let comma = if rest == "}" { "" } else { "," };
            params = format!(r#"{{"_meta":{meta}{comma}{rest}"#);
        }
        let method = request.method;
        format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#)
    }

    /// The metadata of a message. A proxy or a gateway may put a trace of its own into the
    /// request's headers, so the message names the trace, too.
    fn render_meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        if self.link.is_newest() {
            meta.insert(VERSION.to_owned(), NEWEST.into());
            meta.insert(CLIENT_INFO.to_owned(), client_info());
            let can = match self.asks {
                UserQuestions::Nothing => json!({}),
                UserQuestions::Forms => json!({"elicitation": {}}),
                UserQuestions::FormsAndPages => json!({"elicitation": {"form": {}, "url": {}}}),
            };
            meta.insert(CAPABILITIES.to_owned(), can);
        }
        if let Some(trace) = trace::current() {
            for (name, value) in trace::headers_of(Some(&trace)) {
                meta.insert(name.to_owned(), value.into());
            }
        }
        meta
    }

    pub(super) async fn post(
        &self,
        body: String,
        headers: &[(String, String)],
        limits: CallLimits,
    ) -> Result<OutboundResponse<'_>, ServerFailure> {
        self.send(RequestForm::Json, body, headers, limits).await
    }

    pub(super) async fn send(
        &self,
        form: RequestForm,
        body: String,
        headers: &[(String, String)],
        limits: CallLimits,
    ) -> Result<OutboundResponse<'_>, ServerFailure> {
        let mut all = vec![(
            "accept".to_owned(),
            match form {
                RequestForm::Get => EVENT_STREAM.to_owned(),
                RequestForm::Json | RequestForm::Form => {
                    format!("application/json, {EVENT_STREAM}")
                }
            },
        )];
        if !self.link.revision.is_empty() {
            let revision = self.link.revision.clone();
            all.push(("mcp-protocol-version".to_owned(), revision));
        }
        if let Some(session) = &self.link.session {
            all.push(("mcp-session-id".to_owned(), session.clone()));
        }
        all.extend(headers.iter().chain(&self.headers.headers).cloned());
        let request = OutboundRequest {
            purpose: CallPurpose::Tool,
            endpoint: self.endpoint.clone(),
            headers: all,
            body,
            limits,
        };
        Ok(self.outbound.send_as(form, request).await?)
    }
}

fn client_info() -> Value {
    json!({"name": "session-agent", "version": env!("CARGO_PKG_VERSION")})
}

fn to_text(bytes: Vec<u8>) -> Result<String, ServerFailure> {
    String::from_utf8(bytes)
        .map_err(|_| ServerFailure::InvalidResponse("returned bytes that are not text"))
}

/// A text as a header's value, encoded if it contains characters that a header can't.
pub fn encode_header(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.starts_with(ENCODED.0);
    if is_plain {
        text.to_owned()
    } else {
        format!("{}{}{}", ENCODED.0, STANDARD.encode(text), ENCODED.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_value_is_plain_or_encoded() {
        for (text, value) in [
            ("a tool", "a tool"),
            ("ä", "=?base64?w6Q=?="),
            (" a", "=?base64?IGE=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encode_header(text), value);
        }
    }
}
