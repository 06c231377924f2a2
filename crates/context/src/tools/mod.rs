//! The tools with which a model reads and writes its memory: which tools a session has, and running
//! one. A tool exists if there is a block for it, and names only the blocks that it can address.
//!
//! The rule it protects: a model's mistake is an answer that the model can read and correct, never
//! an error of the request.

mod arguments;
mod forget;
mod load_context;
pub mod recalled;
mod search_context;
mod session_search;
mod set_context;
mod unload_context;
pub mod untrusted;

use crate::json_schema::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::arguments::Arguments;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, json};
use base::outbound::LocalBoxFuture;
use base::quoted::{Untrusted, quote};
use memory::backends::find_unavailable;
use memory::definition::Definition;
use memory::kind::BlockKind;
use memory::origin::Origin;
use memory::view::load_view;
use memory::writer::MemoryWriter;
use memory::{BlockScope, Memory};
use models::ToolDefinition;
use search::query::MAX_QUERIES;
use store::config::Config;

/// One row of the table of tools.
pub struct ContextTool {
    pub name: &'static str,
    /// `None`: no block needs the tool. The blocks are those that the toolbox can see.
    define: fn(&Toolbox<'_>, &[Definition]) -> Option<MemoryTool>,
    run: for<'a> fn(
        &'a Toolbox<'_>,
        &'a [Definition],
        &'a Arguments,
    ) -> LocalBoxFuture<'a, Result<String>>,
}

/// The table of tools, in the order in which a model receives them. If it were a `const`, each
/// crate that runs a tool would compile a copy of all.
pub static TOOLS: &[ContextTool] = &[
    set_context::TOOL,
    search_context::TOOL,
    load_context::TOOL,
    unload_context::TOOL,
    session_search::TOOL,
    forget::TOOL,
];

/// The memory and the session for which tools run.
#[derive(Clone, Copy)]
pub struct Toolbox<'a> {
    pub memory: Memory<'a>,
    pub config: &'a Config,
    /// The session whose blocks and documents the tools use, in addition to the agent's.
    pub session_id: Option<&'a Id>,
    pub turn_id: Option<&'a str>,
    /// The first event of the turn's answer.
    pub event_id: Option<&'a str>,
    /// Whether the tools run in answer to a notification: see [`MemoryWriter::is_silent`].
    pub is_silent: bool,
    /// The source of untrusted content in the turn's context (`untrusted.rs`).
    pub untrusted: Option<Origin>,
    /// If set, `session_search` finds only messages of this session.
    pub only_session: Option<&'a Id>,
    /// Whether tools may write the agent's own blocks, which its other sessions see. A caller whose
    /// token is limited to one session may not, unless the token allows it: a model may follow such
    /// a caller's instructions.
    pub writes_agent: bool,
}

/// The result of a tool. A failure is text that the model can read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    pub output: String,
    pub is_error: bool,
}

impl<'a> Toolbox<'a> {
    fn scope(&self) -> BlockScope<'a> {
        self.session_id
            .map_or(BlockScope::Agent, BlockScope::Session)
    }

    fn writer(&self) -> MemoryWriter<'a> {
        MemoryWriter {
            is_tool: true,
            session_id: self.session_id,
            turn_id: self.turn_id,
            event_id: self.event_id,
            is_silent: self.is_silent,
            ..MemoryWriter::default()
        }
    }

    fn may_write(&self, block: &Definition) -> bool {
        block.model_may_write() && (self.writes_agent || block.is_sessions())
    }
}

/// The tools that exist for the toolbox's blocks.
pub fn load_tools(toolbox: &Toolbox<'_>) -> Result<Vec<ToolDefinition>> {
    let blocks = load_view(&toolbox.memory, toolbox.scope())?;
    define_tools(toolbox, &blocks)
        .map(MemoryTool::into_definition)
        .collect()
}

fn define_tools(toolbox: &Toolbox<'_>, blocks: &[Definition]) -> impl Iterator<Item = MemoryTool> {
    let tools = TOOLS.iter();
    tools.filter_map(move |tool| (tool.define)(toolbox, blocks))
}

/// Whether this is the name of a context tool, even of one that no block needs.
pub fn is_ours(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// Whether this tool changes the memory.
pub fn is_write(name: &str) -> bool {
    name == set_context::TOOL.name || name == forget::TOOL.name
}

/// Whether the model can search earlier conversations.
pub fn has_search(tools: &[ToolDefinition]) -> bool {
    let name = session_search::TOOL.name;
    tools.iter().any(|tool| tool.name == name)
}

/// Runs a tool. `arguments` is what the model sent, valid or not.
pub async fn run(toolbox: &Toolbox<'_>, name: &str, arguments: &str) -> Result<ToolOutcome> {
    match attempt(toolbox, name, arguments).await {
        Ok(output) => Ok(ToolOutcome {
            output,
            is_error: false,
        }),
        Err(error) if error.code.status() >= 500 && !is_reported_to_model(&error) => Err(error),
        Err(error) => Ok(ToolOutcome {
            output: error.into_message(),
            is_error: true,
        }),
    }
}

/// Whether the model receives this error as an answer: a backend that is unavailable or not
/// configured does not fail the request.
fn is_reported_to_model(error: &Error) -> bool {
    find_unavailable(error).is_some() || error.code == base::error::Code::NotConfigured
}

async fn attempt(toolbox: &Toolbox<'_>, name: &str, arguments: &str) -> Result<String> {
    let blocks = load_view(&toolbox.memory, toolbox.scope())?;
    let named = TOOLS.iter().find(|tool| tool.name == name);
    let available = named.filter(|tool| (tool.define)(toolbox, &blocks).is_some());
    let Some(tool) = available else {
        return Err(unknown_tool(define_tools(toolbox, &blocks)));
    };
    let arguments = Arguments::parse(arguments)?;
    (tool.run)(toolbox, &blocks, &arguments).await
}

fn unknown_tool(available: impl Iterator<Item = MemoryTool>) -> Error {
    let names: Vec<&str> = available.map(|tool| tool.name).collect();
    let message = if names.is_empty() {
        "There is no such tool. No tools are available here.".to_owned()
    } else {
        format!(
            "There is no such tool. Available tools: {}.",
            names.join(", ")
        )
    };
    Error::invalid("name", message)
}

/// A tool whose schema is not text yet.
struct MemoryTool {
    name: &'static str,
    description: String,
    parameters: Value,
}

impl MemoryTool {
    fn into_definition(self) -> Result<ToolDefinition> {
        let parameters = json::raw(json::text(&self.parameters))?;
        Ok(ToolDefinition {
            name: self.name.to_owned(),
            description: self.description,
            parameters,
        })
    }
}

/// The blocks of one kind.
fn blocks_of_kind(blocks: &[Definition], kind: BlockKind) -> Vec<&Definition> {
    blocks.iter().filter(|block| block.kind == kind).collect()
}

/// A tool that takes a block's label and one text. `label` and `text` describe the two
/// arguments for the model; `text` also has its name.
fn tool_with_text(
    name: &'static str,
    description: String,
    blocks: &[&Definition],
    label: &str,
    text: (&str, &str),
) -> MemoryTool {
    let (text, text_description) = text;
    MemoryTool {
        name,
        description,
        parameters: json!({
            "type": "object",
            "properties": {
                "label": {
                    "type": "string",
                    "enum": labels_of(blocks),
                    "description": label
                },
                text: {"type": "string", "description": text_description}
            },
            "required": ["label", text]
        }),
    }
}

/// The schema of further queries of one search.
fn more_queries() -> Value {
    json!({
        "type": "array",
        "items": {"type": "string"},
        "maxItems": MAX_QUERIES - 1,
        "description": "More queries for the same search. Use this if the answer may be in several \
                        places: one short query for each. All results are merged into one ranking."
    })
}

/// The blocks as a tool's description lists them, one per line.
fn describe_blocks(blocks: &[&Definition]) -> String {
    blocks
        .iter()
        .map(|block| {
            // The description in an imported file is untrusted, so it is left out.
            let description = block.description.as_ref().filter(|_| !block.is_imported());
            let description = description.map_or_else(String::new, |description| {
                format!(": {}", quote(Untrusted::BlockDescription, description))
            });
            format!("\n- {} ({}){description}", block.label, block.kind.name())
        })
        .collect()
}

fn labels_of(blocks: &[&Definition]) -> Vec<String> {
    blocks
        .iter()
        .map(|block| block.label.as_str().to_owned())
        .collect()
}
