//! The tools of one turn: the memory's own, the registered ones and the client's. A
//! name belongs to the first of these that has it, so a client can't replace one of the
//! agent's tools.

use sha2::{Digest as _, Sha256};

use super::registered::{RegisteredTool, load_tools};
use super::turn::{CallState, ToolRunner, Turn, TurnCall};
use crate::base::error::Result;
use crate::base::json::json;
use crate::context::tools::{self, Toolbox, is_ours};
use crate::models::ToolDefinition;

/// The most bytes of all outputs of one turn: the turn is stored in one row, which
/// holds 2 MB.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// What the model reads if the approval was for another tool of the same name.
const CHANGED: &str = "The tool was changed or removed after the user was asked, so the approval does not count. Nothing was called.";

pub struct TurnTools<'a> {
    toolbox: Toolbox<'a>,
    registered: Vec<RegisteredTool>,
    pub definitions: Vec<ToolDefinition>,
    /// The names of the client's tools.
    clients: Vec<String>,
}

impl<'a> TurnTools<'a> {
    pub fn load(toolbox: Toolbox<'a>, turn: &Turn) -> Result<Self> {
        let mut definitions = tools::load_tools(&toolbox)?;
        let registered = load_tools(toolbox.memory.db, &toolbox.memory.outbound.deployed())?;
        for tool in &registered {
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
            registered,
            definitions,
            clients,
        })
    }

    /// Bytes of the tool definitions that the model is sent.
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
                format!("There is no such tool. There are: {}.", names.join(", "))
            });
        }
        if self.clients.iter().any(|client| client == name) {
            return ToolRunner::Client;
        }
        let registered = self.find_registered(name);
        match registered.filter(|tool| tool.needs_approval) {
            Some(tool) => ToolRunner::ServerAfterApproval {
                asked_of: tool.fingerprint(),
            },
            None => ToolRunner::Server,
        }
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
            let is_same = |asked_of: &String| *asked_of == tool.fingerprint();
            tool.needs_approval && call.asked_of.as_ref().is_none_or(is_same)
        })
    }

    /// Makes a call. The model reads a failure as its result.
    pub async fn run(&self, turn: &Turn, call: &TurnCall) -> CallState {
        let memory = &self.toolbox.memory;
        let name = call.name.as_str();
        let registered = match &call.approval {
            Some(_) => match self.find_approved(call) {
                Some(tool) => Some(tool),
                None => return CallState::failed(CHANGED),
            },
            None => self.find_registered(name),
        };
        if let Some(tool) = registered {
            return tool
                .call(
                    memory.outbound,
                    memory.agent,
                    Some(&turn.session_id),
                    &call.arguments,
                    &key_of(memory.agent, turn, call),
                )
                .await;
        }
        match tools::run(&self.toolbox, name, call.arguments.as_str()).await {
            Ok(outcome) if outcome.is_error => CallState::failed(outcome.output),
            Ok(outcome) => CallState::Done {
                output: outcome.output,
                is_json: false,
            },
            Err(error) => CallState::failed(error.into_message()),
        }
    }
}

/// A key that is unique per call of a turn, in hexadecimal, since ids may hold
/// characters that a header must not.
fn key_of(agent: &str, turn: &Turn, call: &TurnCall) -> String {
    // A JSON array keeps the parts apart.
    let parts = json!([agent, turn.session_id, turn.id, turn.asked(), call.id]);
    format!("{:x}", Sha256::digest(parts.to_string()))
}

/// Adds a tool if its name is free, and says whether it was.
fn push_new(definitions: &mut Vec<ToolDefinition>, tool: ToolDefinition) -> bool {
    let is_new = !definitions.iter().any(|known| known.name == tool.name);
    if is_new {
        definitions.push(tool);
    }
    is_new
}
