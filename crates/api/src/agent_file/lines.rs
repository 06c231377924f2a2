//! The lines that only the file of the whole agent has, by their `type`. They come in this order:
//! one `agent`; at most one `settings`; each `tool` by its name; each `usage` by its day and model;
//! each `proposal` by its number; the lines of the agent's memory (`lifecycle/transfer/memory`);
//! the lines of each session, from its `session` to its `end`; and one `done`. A file without its
//! `done` was truncated.
//!
//! Between them are `cursor` lines. Each has the position from which an export continues that was
//! interrupted after it. Their positions depend only on the content.
//!
//! The format's number changes when an older reader would misread a newer file.

use serde::{Deserialize, Serialize};

use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, JsonObject, MAX_INTEGER};
use chat::tools::mcp::server::ServerState;
use conversation::session::usage_days::DayUsage;
use lifecycle::transfer::lines::{FileTime, LineHead, LineKind, SettingsPart};
use lifecycle::transfer::memory::SORTS;

pub const FORMAT: i64 = 1;

/// The types of lines that only this file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentLineKind {
    Agent,
    Settings,
    Tool,
    Usage,
    Proposal,
    Cursor,
    /// The session above was deleted while its lines were written.
    Gone,
    Done,
    /// Any other type.
    #[serde(other)]
    Other,
}

/// A line's type, read before the rest of the line.
#[derive(Deserialize)]
pub struct AgentLineHead {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    pub format: Count,
    /// The file continues another file: it contains only further sessions. A long file is sent in
    /// such parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
}

impl AgentLine {
    pub fn check(&self) -> Result<()> {
        if (1..=FORMAT).contains(&self.format.0) {
            return Ok(());
        }
        Err(Error::invalid(
            "format",
            format!(
                "The file's `format` is {}; this version of Session Agent reads up to {FORMAT}. Import the file with the version that exported it, or a newer one.",
                self.format.0
            ),
        ))
    }
}

/// The agent's own settings, without the deployed defaults.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsIn {
    #[serde(rename = "type")]
    _kind: AgentLineKind,
    /// The fields of `configureAgent`.
    pub config: Option<JsonObject>,
    pub compaction: Option<SettingsPart>,
    /// The deployed tools that the agent removed.
    #[serde(default)]
    pub removed_tools: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsOut<C: Serialize> {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<SettingsPart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed_tools: Vec<String>,
}

/// A tool, or a server of tools. The values of headers are not in the file: they may be
/// credentials, or name one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<JsonObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub needs_approval: bool,
    /// The names of the headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Count>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<Count>,
    pub defined_at: FileTime,
    /// A server's list of tools, and when the list was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<FileTime>,
}

/// The agent's spending on one day with one model.
#[derive(Serialize, Deserialize)]
pub struct UsageLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    #[serde(flatten)]
    pub day: DayUsage,
}

/// The longest name of a model in a `usage` line.
const MAX_MODEL_CHARS: usize = 200;

/// The last day that a `usage` line may name: in the year 9999.
const MAX_DAY: i64 = 2_932_896;

impl UsageLine {
    pub fn check(&self) -> Result<()> {
        let DayUsage {
            day,
            model,
            turns,
            failed,
            input_tokens,
            output_tokens,
            cached_input_tokens,
            cost,
        } = &self.day;
        let counts = [
            turns,
            failed,
            input_tokens,
            output_tokens,
            cached_input_tokens,
        ];
        let are_counts = counts
            .iter()
            .all(|count| (0..=MAX_INTEGER).contains(*count));
        let is_named = model
            .as_ref()
            .is_none_or(|model| (1..=MAX_MODEL_CHARS).contains(&model.chars().count()));
        let is_cost = (0.0..=base::numbers::MAX_FILE_COST).contains(cost);
        if are_counts && is_named && is_cost && (0..=MAX_DAY).contains(day) {
            return Ok(());
        }
        Err(Error::invalid(
            "day",
            "A `usage` line must have a day since the epoch, a model of up to 200 characters, and numbers that are not negative.",
        ))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CursorLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    pub after: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoneLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    pub id: Id,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoneLine {
    #[serde(rename = "type")]
    pub kind: AgentLineKind,
    /// The number of sessions in the file.
    pub sessions: Count,
}

/// Whether a session begins with this line.
pub fn is_session(line: &[u8]) -> Result<bool> {
    Ok(other_kind(line)? == LineKind::Session)
}

/// Whether the agent's own lines end before this line.
pub fn is_of_sessions(kind: AgentLineKind, line: &[u8]) -> Result<bool> {
    Ok(match kind {
        AgentLineKind::Cursor | AgentLineKind::Done => true,
        AgentLineKind::Other => is_session(line)?,
        _ => false,
    })
}

/// The type of a line that the file of a session has, too.
fn other_kind(line: &[u8]) -> Result<LineKind> {
    let kind = json::parse::<LineHead>(line)?.kind;
    match kind {
        LineKind::Error => Err(Error::invalid(
            "type",
            "The export that wrote this file failed here. Export the agent again.",
        )),
        kind => Ok(kind),
    }
}

/// The type of a line of the agent's memory.
pub fn memory_kind(line: &[u8]) -> Result<LineKind> {
    let kind = other_kind(line)?;
    if SORTS.iter().any(|sort| sort.kind == kind) {
        Ok(kind)
    } else {
        Err(line_out_of_order())
    }
}

pub fn line_out_of_order() -> Error {
    Error::invalid(
        "type",
        "A line of this `type` is not allowed here. Lines must be in the order of an export: the \
         agent's own, then each session from `session` to `end`, then `done`.",
    )
}
