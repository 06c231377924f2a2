//! The tools of one turn: those of the memory, those that were registered, those
//! that the client brought. A name means the first of these that has it: a
//! client can't put its tool in place of the agent's.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::registered::{RegisteredTool, load_tools};
use super::turn::{CallState, ToolRunner, Turn, TurnCall};
use crate::base::error::Result;
use crate::context::tools::{self, Toolbox, is_ours};
use crate::models::ToolDefinition;

/// What all outputs of one turn may have together: the turn is stored while it
/// runs, and a row holds 2 MB.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// What the model reads of a call whose approval is for another tool than the one
/// of its name now.
const CHANGED: &str = "The tool was changed or removed after the user was asked, so the approval does not count. Nothing was called.";

pub struct TurnTools<'a> {
    toolbox: Toolbox<'a>,
    registered: Vec<RegisteredTool>,
    pub definitions: Vec<ToolDefinition>,
    /// Of the client's, by name.
    clients: Vec<String>,
}

impl<'a> TurnTools<'a> {
    pub fn load(toolbox: Toolbox<'a>, turn: &Turn) -> Result<Self> {
        let mut definitions = tools::load_tools(&toolbox)?;
        let registered = load_tools(toolbox.memory.db)?;
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

    /// Bytes of what the model is told of the tools.
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
                "There is no such tool; there are none here.".to_owned()
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

    /// The tool that a call's approval is for: one that is registered now, still
    /// needs approval, and is where it was when the user was asked.
    fn find_approved(&self, call: &TurnCall) -> Option<&RegisteredTool> {
        self.find_registered(call.name.as_str()).filter(|tool| {
            let is_same = |asked_of: &String| *asked_of == tool.fingerprint();
            tool.needs_approval && call.asked_of.as_ref().is_none_or(is_same)
        })
    }

    /// Makes a call. A failure is data that the model reads.
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
                    &turn.session_id,
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
            Err(error) => CallState::failed(error.message),
        }
    }
}

/// Names one call of one turn, in hexadecimal: ids are anybody's and may hold what
/// no header may.
fn key_of(agent: &str, turn: &Turn, call: &TurnCall) -> String {
    // A JSON array, so that no part reaches into another.
    let parts = json!([agent, turn.session_id, turn.id, turn.asked(), call.id]);
    let digest = Sha256::digest(parts.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the name was free.
fn push_new(definitions: &mut Vec<ToolDefinition>, tool: ToolDefinition) -> bool {
    let is_new = !definitions.iter().any(|known| known.name == tool.name);
    if is_new {
        definitions.push(tool);
    }
    is_new
}
