//! Chat turns.
//!
//! `node scripts/crate.mjs` writes this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::later_shapes::{TurnFinish, TurnUsage, WhenBusy};
use crate::Object;
use crate::message::NewMessage;
use crate::operation::Operation;

/// Writes a user's message, runs its turn, and returns when the turn ends.
///
/// A session that doesn't exist is created. If you repeat the call with the same message id, it
/// waits for the same turn, or returns the same answer; with another text it is refused. The turn
/// continues if the caller disconnects. If a turn fails, the call fails; the turn's output so far
/// stays in the session. A token needs the same permissions as for a chat request.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RunTurn {
    pub session_id: String,
    /// A user's message of the AI SDK. With an `id`, the call may be repeated safely.
    pub message: NewMessage,
    /// The `deliveryId` of the call of `onTurnEnd` or `onMemoryChange` that this request
    /// answers. The end of this turn, and its writes to memory, cause no further calls. An
    /// id that this agent did not issue for a turn of this session or for memory has no
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The model of this turn; see `configureAgent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Texts to add after the agent's own system instructions in this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instructions: Option<Vec<String>>,
    /// Tools of the caller: `{name, description, parameters}`. A turn that calls one ends
    /// with `tool-calls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Object>>,
    /// What to do with the message if a turn of the session is running. Default: the
    /// agent's setting. `replace` requires a token that can run `cancelTurn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_busy: Option<WhenBusy>,
}

impl RunTurn {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message: impl Into<NewMessage>) -> Self {
        Self {
            session_id: session_id.into(),
            message: message.into(),
            delivery_id: None,
            model: None,
            system_instructions: None,
            tools: None,
            when_busy: None,
        }
    }
}

setters! {
    RunTurn:
    delivery_id: impl Into<String>;
    model: impl Into<String>;
    system_instructions: Vec<String>;
    tools: Vec<Object>;
    when_busy: WhenBusy;
}

impl Operation for RunTurn {
    type Output = RanTurn;
    const NAME: &'static str = "runTurn";
    const READS: bool = false;

    fn is_repeatable(&self) -> bool {
        self.message.id.is_some()
    }
}

/// Stops the running turn of a session. The answer so far is stored.
///
/// With `messageId`, only the turn of this message is stopped. If the message is still queued, it
/// is removed and never reaches the log.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CancelTurn {
    pub session_id: String,
    /// The user's message, or the message that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

impl CancelTurn {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            message_id: None,
        }
    }
}

setters! {
    CancelTurn:
    message_id: impl Into<String>;
}

impl Operation for CancelTurn {
    type Output = Cancelled;
    const NAME: &'static str = "cancelTurn";
    const READS: bool = false;
}

/// Registers a tool that this agent's models may call in a chat turn: behind a service binding, or
/// at an address whose origin is in `TOOL_ORIGINS`. With `mcp`, registers the tools of a server of
/// the Model Context Protocol.
///
/// The tool is called with a POST of `{name, arguments, agent, sessionId}`. The model reads the
/// answer. The header `idempotency-key` identifies the call. The tools of an MCP server are called
/// according to the protocol. Their names start with the server's name and `_`.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DefineTool {
    /// 1 to 64 letters, digits, `_` or `-`; for a server, 1 to 32.
    pub name: String,
    /// The description of the tool. A server describes its tools itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Headers of each call. The value `secret:NAME` or `Bearer secret:NAME` is replaced
    /// with the Worker's secret of this name. The variable `TOOL_SECRETS` must assign the
    /// secret to the tool's origin.
    /// Default: `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The maximum size of the answer that the model reads, in bytes. A longer answer, up to
    /// 1 MiB, is stored whole.
    /// Default: `262144`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
    /// An MCP server: its URL, or `{service, path}` of a service binding. The server's
    /// tools are fetched immediately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<ServerSourceInput>,
    /// Whether the user must approve each call. Default: `false`, and `true` for a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_approval: Option<bool>,
    /// JSON Schema of an object. Default: any object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Object>,
    /// The service binding's name. Set exactly one of this, `url` and `mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The timeout of a call, in milliseconds. If omitted: 30 seconds without data and 5
    /// minutes in total.
    /// Default: `30000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl DefineTool {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            headers: None,
            max_output_bytes: None,
            mcp: None,
            needs_approval: None,
            parameters: None,
            service: None,
            timeout_ms: None,
            url: None,
        }
    }
}

setters! {
    DefineTool:
    description: impl Into<String>;
    headers: BTreeMap<String, String>;
    max_output_bytes: i64;
    mcp: ServerSourceInput;
    needs_approval: bool;
    parameters: Object;
    service: impl Into<String>;
    timeout_ms: i64;
    url: impl Into<String>;
}

impl Operation for DefineTool {
    type Output = DefinedTool;
    const NAME: &'static str = "defineTool";
    const READS: bool = false;
}

/// Removes a registered tool, or a server with all of its tools. A tool that is deployed, by the
/// class's code or by the defaults for every agent, is hidden from this agent; with `restore` it is
/// shown again.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RemoveTool {
    pub name: String,
    /// Instead of removing a tool, shows a deployed tool again that was removed from this agent
    /// earlier.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<bool>,
}

impl RemoveTool {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            restore: None,
        }
    }
}

setters! {
    RemoveTool:
    restore: bool;
}

impl Operation for RemoveTool {
    type Output = RemovedTool;
    const NAME: &'static str = "removeTool";
    const READS: bool = false;
}

/// Lists the registered tools, those of servers included, by name.
///
/// Without the secret, a header is shown by its name, with the value `set`, and an address by its
/// host.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListTools {}

impl ListTools {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Operation for ListTools {
    type Output = RegisteredTools;
    const NAME: &'static str = "listTools";
    const READS: bool = true;
}

/// What `cancelTurn` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Whether a turn was running, or the message was waiting.
    pub cancelled: bool,
}

/// The tool that was registered.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DefinedTool {
    ShownTool(ShownTool),
    ShownServer(ShownServer),
}

/// A tool of a server that models do not get.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LeftOutTool {
    /// The tool's name at its server.
    pub name: String,
    pub reason: String,
}

/// What `runTurn` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RanTurn {
    /// The assistant's message; `null`: the turn had no output.
    pub message: Option<Object>,
    pub usage: TurnUsage,
    pub finish_reason: TurnFinish,
    /// The number of requests to the model.
    pub steps: i64,
}

/// What `listTools` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RegisteredTools {
    pub tools: Vec<ShownTool>,
    /// The names of the deployed tools that were removed from this agent: `removeTool` with
    /// `restore`
    /// shows one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<String>>,
    /// The servers that some of the tools are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<ShownServer>>,
}

/// What `removeTool` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RemovedTool {
    pub removed: bool,
    /// With `restore`: whether the tool had been removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<bool>,
}

/// A part of `ServerSource`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ServerService {
    /// The service binding's name.
    pub service: String,
    /// The path of the service. Default: `mcp`.
    pub path: Option<String>,
}

/// A part of `ServerSourceInput`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ServerServiceInput {
    /// The service binding's name.
    pub service: String,
    /// The path of the service. Default: `mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl ServerServiceInput {
    #[must_use]
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            path: None,
        }
    }
}

setters! {
    ServerServiceInput:
    path: impl Into<String>;
}

/// An address, or a service binding.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ServerSource {
    Text(String),
    ServerService(ServerService),
}

/// An address, or a service binding.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ServerSourceInput {
    Text(String),
    ServerServiceInput(ServerServiceInput),
}

/// A server, as `defineTool` and `listTools` return it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ShownServer {
    pub name: String,
    pub mcp: ServerSource,
    /// Whether the user must approve each call of its tools.
    pub needs_approval: bool,
    /// The revision of the protocol that the server speaks.
    pub revision: String,
    /// The time of the last request for the server's list, in milliseconds since the epoch.
    pub asked_at: i64,
    /// The headers of each request. A secret is shown by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The server's tools that models do not get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOutTool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
    /// The reason why the server returned no list on the last request. Its tools are those
    /// of the previous list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// The server's tools, in the answer of `defineTool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ShownTool>>,
}

/// A registered tool, as returned by `listTools`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ShownTool {
    pub name: String,
    pub description: String,
    /// The tool's arguments, as a JSON Schema.
    pub parameters: Object,
    pub needs_approval: bool,
    /// The headers of each call. A secret is shown by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// Set if the server added or changed the tool after `defineTool`: calls need approval until
    /// `defineTool` is called again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_changed: Option<bool>,
    /// Set if the tool is deployed: by the class's code, or by the defaults for every
    /// agent. `removeTool` hides it from this agent only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_deployed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
    /// The server that the tool comes from, by the name given to `defineTool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}
