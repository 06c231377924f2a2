//! The tools of one turn: the memory's own, the registered ones and the client's. If
//! several tools have the same name, the first in this order wins, so a client can't
//! replace one of the agent's tools.

use sha2::{Digest as _, Sha256};

use crate::record::ToolKind;
use crate::tools::mcp::refresh::refresh_servers;
use crate::tools::mcp::server::ToolServer;
use crate::tools::registered::{DeployedTools, RegisteredTool};
use crate::tools::rows::{AgentTools, load_agent_tools};
use crate::turn::{CallState, ToolRunner, Turn, TurnCall};
use base::error::Result;
use base::json::{self, json};
use context::tools::{self, Toolbox, is_ours};
use models::ToolDefinition;
use store::memory_use::MemoryUse;

/// The maximum bytes of all outputs of one turn that its model reads whole: the turn is stored in
/// one row, which can have 2 MB. Further outputs are stored by `run/whole_outputs.rs`.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The text that a model reads if a tool was changed after the model called it.
const CHANGED_SINCE: &str = "The tool was changed or removed after you called it. Nothing was \
                             called. Read the tool's definition again.";

/// The text that a model reads if the approval was for another tool of the same name.
const CHANGED: &str = "The tool was changed or removed after the user decided, so the approval is \
                       not valid. Nothing was called.";

pub struct TurnTools<'a> {
    toolbox: Toolbox<'a>,
    deployed: &'a DeployedTools,
    registered: Vec<RegisteredTool>,
    servers: Vec<ToolServer>,
    pub definitions: Vec<ToolDefinition>,
    /// The names of the client's tools.
    clients: Vec<String>,
    /// Whether the client uses a provider's API.
    is_of_api: bool,
    /// The number of the model's answers so far.
    answers: usize,
}

impl<'a> TurnTools<'a> {
    pub fn load(toolbox: Toolbox<'a>, deployed: &'a DeployedTools, turn: &Turn) -> Result<Self> {
        let mut definitions = tools::load_tools(&toolbox)?;
        let api = turn.api.as_deref();
        definitions.retain(|tool| match api.map(|api| (api.runs_tools, api.memory)) {
            None | Some((true, MemoryUse::On)) => true,
            Some((true, MemoryUse::Read)) => !tools::is_write(&tool.name),
            Some((false, _) | (true, MemoryUse::Off)) => false,
        });
        let AgentTools {
            tools: registered,
            servers,
            ..
        } = load_agent_tools(toolbox.memory.db, deployed)?;
        // Such a client has no way to approve a call.
        let is_offered =
            |tool: &&RegisteredTool| api.is_none_or(|api| api.runs_tools && !tool.needs_approval);
        for tool in registered.iter().filter(is_offered) {
            push_new(&mut definitions, tool.definition.clone());
        }
        let mut clients = Vec::new();
        for tool in &turn.client_tools {
            if !is_ours(&tool.name) && push_new(&mut definitions, tool.clone()) {
                clients.push(tool.name.clone());
            }
        }
        Ok(Self {
            toolbox,
            deployed,
            registered,
            servers,
            definitions,
            clients,
            is_of_api: api.is_some(),
            answers: turn.answer_count(),
        })
    }

    /// At the start of a turn, requests the outdated tool lists from their servers. The tools must
    /// be loaded again afterward. `None`: no list is outdated.
    pub fn refresh(&mut self, turn: &Turn) -> Option<impl Future<Output = Result<()>> + use<'a>> {
        let memory = self.toolbox.memory;
        let deployed = self.deployed;
        let now_ms = memory.host.now_ms();
        let mut stale = std::mem::take(&mut self.servers);
        stale.retain(|server| server.is_stale(now_ms));
        if stale.is_empty() || turn.answer_count() > 0 || turn.length_feedback.refusals > 0 {
            return None;
        }
        Some(async move { refresh_servers(&memory, deployed, &stale).await })
    }

    /// Bytes of the tool definitions that are sent to the model.
    pub fn bytes(&self) -> usize {
        let tools = self.definitions.iter();
        tools
            .map(|tool| tool.description.len() + tool.parameters.get().len())
            .sum()
    }

    pub fn runner(&self, name: &str) -> ToolRunner {
        if !self.definitions.iter().any(|tool| tool.name == name) {
            let names: Vec<&str> = self
                .definitions
                .iter()
                .map(|tool| tool.name.as_str())
                .collect();
            return ToolRunner::Nobody(if names.is_empty() {
                "There is no such tool. No tools are available here.".to_owned()
            } else {
                format!(
                    "There is no such tool. Available tools: {}.",
                    names.join(", ")
                )
            });
        }
        if self.clients.iter().any(|client| client == name) {
            return if self.is_of_api {
                ToolRunner::ApiClient
            } else {
                ToolRunner::Client
            };
        }
        let registered = self.find_registered(name);
        match registered {
            Some(tool) if tool.needs_approval && tool.is_of_class() => ToolRunner::Class {
                fingerprint: tool.fingerprint(),
            },
            Some(tool) if tool.needs_approval => ToolRunner::ServerAfterApproval {
                fingerprint: tool.fingerprint(),
            },
            tool => ToolRunner::Server {
                fingerprint: tool.and_then(RegisteredTool::fingerprint_of_call),
            },
        }
    }

    /// The kind of a tool, for the turn's record.
    pub fn kind(&self, name: &str) -> ToolKind {
        if self.clients.iter().any(|client| client == name) {
            return ToolKind::Client;
        }
        match self.find_registered(name) {
            Some(tool) if tool.of_server.is_some() => ToolKind::Mcp,
            Some(tool) if tool.is_of_class() => ToolKind::Class,
            None if is_ours(name) => ToolKind::Memory,
            Some(_) | None => ToolKind::Registered,
        }
    }

    /// The maximum bytes of an output that the model reads whole.
    pub fn shown_bytes(&self, name: &str) -> usize {
        let registered = self.find_registered(name);
        registered.map_or(MAX_OUTPUT_BYTES, |tool| tool.limits.shown_bytes())
    }

    fn find_registered(&self, name: &str) -> Option<&RegisteredTool> {
        self.registered
            .iter()
            .find(|tool| tool.definition.name == name && !is_ours(name))
    }

    /// The tool that a call's approval is for: it is still registered, still needs
    /// approval, and has the same address as when the user was asked.
    fn find_approved(&self, call: &TurnCall) -> Option<&RegisteredTool> {
        self.find_registered(call.name.as_str()).filter(|tool| {
            let is_same = |fingerprint: &String| *fingerprint == tool.fingerprint();
            tool.needs_approval && call.fingerprint.as_ref().is_none_or(is_same)
        })
    }

    /// The tool that a call without an approval is for. The tool must still need no
    /// approval, or the class must have waived it for this call. If the tool's definition
    /// can change by itself, it must also be the tool that the model saw.
    fn find_seen(&self, call: &TurnCall) -> Result<Option<&RegisteredTool>, &'static str> {
        let tool = self.find_registered(call.name.as_str());
        let is_same = match (&call.fingerprint, tool) {
            (Some(seen), Some(tool)) => tool.fingerprint() == *seen,
            (Some(_), None) => false,
            // The model saw no tool of a server.
            (None, tool) => tool.is_none_or(|tool| tool.of_server.is_none()),
        };
        let needs_no_approval = tool
            .is_none_or(|tool| !tool.needs_approval || (call.skips_approval && tool.is_of_class()));
        (is_same && needs_no_approval)
            .then_some(tool)
            .ok_or(CHANGED_SINCE)
    }

    /// Whether the user must approve a call of one of the class's tools. Only the class
    /// itself can waive the approval.
    pub async fn needs_approval(&self, call: &TurnCall) -> bool {
        let memory = &self.toolbox.memory;
        let Some(tool) = self.find_registered(call.name.as_str()) else {
            return true;
        };
        let (session_id, key) = (self.toolbox.session_id, self.key_of(call));
        !tool
            .class_skips_approval(memory, session_id, &call.arguments, &key)
            .await
    }

    /// Makes a call. The model reads a failure as its result.
    pub async fn run(&self, call: &TurnCall) -> CallState {
        let memory = &self.toolbox.memory;
        let name = call.name.as_str();
        let registered = match &call.approval {
            Some(_) => match self.find_approved(call) {
                Some(tool) => Some(tool),
                None => return CallState::failed(CHANGED),
            },
            None => match self.find_seen(call) {
                Ok(tool) => tool,
                Err(sentence) => return CallState::failed(sentence),
            },
        };
        if let Some(tool) = registered {
            let key = self.key_of(call);
            // A client of a provider's API knows no questions.
            let may_ask = !self.is_of_api;
            return tool
                .call_in_turn(memory, self.toolbox.session_id, call, &key, may_ask)
                .await;
        }
        match tools::run(&self.toolbox, name, call.arguments.as_str()).await {
            Ok(outcome) if outcome.is_error => CallState::failed(outcome.output),
            Ok(outcome) => CallState::done(outcome.output, false),
            Err(error) => CallState::failed(error.into_message()),
        }
    }

    /// A key that is unique per call of a turn, in hexadecimal, since ids may contain
    /// characters that are not allowed in a header.
    fn key_of(&self, call: &TurnCall) -> String {
        let toolbox = &self.toolbox;
        let agent = toolbox.memory.agent;
        // A JSON array separates the parts unambiguously.
        let parts = json!([
            agent,
            toolbox.session_id,
            toolbox.turn_id,
            self.answers,
            call.id
        ]);
        format!("{:x}", Sha256::digest(json::text(&parts)))
    }
}

/// Adds a tool if its name is free; `true`: it was added.
pub fn push_new(definitions: &mut Vec<ToolDefinition>, tool: ToolDefinition) -> bool {
    let is_new = !definitions.iter().any(|known| known.name == tool.name);
    if is_new {
        definitions.push(tool);
    }
    is_new
}
