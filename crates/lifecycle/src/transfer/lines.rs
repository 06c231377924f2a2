//! The lines of the file, by their `type`. They come in this order: one `session`, then each
//! `event` in `seq` order, each `compaction`, each `change` in the feed's order, the session's
//! memory (`memory/lines.rs`), and one `end`. A file without its `end` was truncated.
//!
//! The file contains the session's own compaction settings, but not how past compactions
//! went: those describe the agent that ran them.
//!
//! An event's line is the event as `loadEvents` shows it, with the fields that are
//! needed to restore its position. If the event was appended as a message, the line
//! contains the message instead of its content. The format's number changes when an
//! older reader would misread a newer file.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use base::action::Action;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, JsonObject, MAX_INTEGER, RawValue, bounded, nullable};
use base::numbers::{MAX_FILE_COST, MAX_FILE_SEQ, MAX_FILE_TIME_MS};
use base::tags::Tags;
use context::compaction::settings::OwnSettings;
use conversation::log::event::{check_belongs, missing};
use conversation::log::note::Note;
use conversation::log::tool::{StoredTool, ToolCall};
use conversation::session::retention::SessionRetentionChange;
use store::retention::Retention;

pub const FORMAT: i64 = 1;

/// Types of lines, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    Session,
    Event,
    Compaction,
    Change,
    /// A block's definition.
    Block,
    /// One version of a block's text.
    Version,
    /// An entry of a searchable block.
    Entry,
    /// A document of a loadable block.
    Skill,
    /// An earlier version of an entry or a document.
    Past,
    /// A document in the session's context.
    Loaded,
    /// The frozen prompt.
    Prompt,
    End,
    /// The last line of an export that failed half-way.
    Error,
}

impl LineKind {
    pub fn name(self) -> &'static str {
        match self {
            LineKind::Session => "session",
            LineKind::Event => "event",
            LineKind::Compaction => "compaction",
            LineKind::Change => "change",
            LineKind::Block => "block",
            LineKind::Version => "version",
            LineKind::Entry => "entry",
            LineKind::Skill => "skill",
            LineKind::Past => "past",
            LineKind::Loaded => "loaded",
            LineKind::Prompt => "prompt",
            LineKind::End => "end",
            LineKind::Error => "error",
        }
    }
}

/// A line's type, read before the rest of the line.
#[derive(Deserialize)]
pub struct LineHead {
    #[serde(rename = "type")]
    pub kind: LineKind,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionLine {
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub format: Count,
    /// The exported session's id. An import takes the id from its URL instead.
    pub id: Id,
    /// Omitted in the file of a whole agent, which is the same whatever the agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub name: Option<String>,
    pub parent_session_id: Option<Id>,
    pub metadata: Option<JsonObject>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    pub created_at: FileTime,
    pub updated_at: FileTime,
    pub usage: SessionLineUsage,
    /// Every new event gets a higher `seq`.
    pub seq_floor: Count,
    /// The session's own settings, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<SettingsPart>,
    /// The session's own retention rules, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Present if retention deletes nothing of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// In the file of a whole agent: the last event that learning has covered in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_seq: Option<Count>,
}

impl SessionLine {
    /// The rules of the line.
    pub fn retention(&self) -> SessionRetentionChange {
        SessionRetentionChange {
            retention: self.retention.clone().map(Some),
            pinned: self.pinned,
        }
    }
}

/// When and how far this session is compacted. Omitted settings are the agent's.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsPart {
    /// `null`: the session is never compacted automatically.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "nullable"
    )]
    compact_after: Option<Option<Count>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protect_head: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_token_budget: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tail_messages: Option<Count>,
}

impl From<OwnSettings> for SettingsPart {
    fn from(own: OwnSettings) -> Self {
        Self {
            compact_after: own.compact_after.map(|tokens| tokens.map(count)),
            protect_head: own.protect_head.map(count),
            tail_token_budget: own.tail_token_budget.map(count),
            min_tail_messages: own.min_tail_messages.map(count),
        }
    }
}

impl SettingsPart {
    /// Checks the settings as `configureCompaction` does.
    pub fn settings(self) -> Result<OwnSettings> {
        let number = |count: Option<Count>| count.map(|count| count.0);
        let own = OwnSettings {
            compact_after: self.compact_after.map(number),
            protect_head: number(self.protect_head),
            tail_token_budget: number(self.tail_token_budget),
            min_tail_messages: number(self.min_tail_messages),
        };
        own.check()?;
        Ok(own)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionLineUsage {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub cost: f64,
    /// Present if a provider reported any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<Count>,
}

impl SessionLine {
    pub fn check(&self) -> Result<()> {
        if self.format.0 != FORMAT {
            return Err(Error::invalid(
                "format",
                format!(
                    "The file's `format` is {}; this version of Session Agent reads {FORMAT}. Import the file with the version that exported it, or a newer one.",
                    self.format.0
                ),
            ));
        }
        check_seq("seqFloor", 0, self.seq_floor)?;
        if (0.0..=MAX_FILE_COST).contains(&self.usage.cost) {
            return Ok(());
        }
        Err(Error::invalid(
            "usage.cost",
            format!("`usage.cost` must be a number from 0 to {MAX_FILE_COST:e}."),
        ))
    }

    /// Whether the line has any usage other than zero.
    pub fn has_usage(&self) -> bool {
        let tokens = self.usage.input_tokens.0 + self.usage.output_tokens.0;
        tokens > 0 || self.usage.cost > 0.0
    }
}

/// An event in an export.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventOut<'a> {
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub seq: i64,
    pub id: &'a str,
    pub parent_id: Option<&'a str>,
    pub action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    #[serde(flatten)]
    pub tool: StoredTool<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a RawValue>,
    /// A chat turn's note on the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a RawValue>,
    pub created_at: i64,
    pub written_at: i64,
}

/// An event in an import.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventLine {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    pub seq: Count,
    pub id: Id,
    pub parent_id: Option<Id>,
    pub action: Action,
    pub content: Option<String>,
    pub tool_calls: Option<Vec<ToolCall>>,
    pub tool_call_id: Option<Id>,
    pub tool_name: Option<Id>,
    pub is_error: Option<bool>,
    pub metadata: Option<JsonObject>,
    pub message: Option<JsonObject>,
    pub note: Option<Note>,
    /// Any time that an append accepts.
    pub created_at: Count,
    pub written_at: FileTime,
}

impl EventLine {
    /// Checks rules that serde's types can't. Requires less than an append does: a log
    /// that was migrated from the documents' layout may lack fields that an append
    /// requires.
    pub fn check(&self) -> Result<()> {
        check_seq("seq", 1, self.seq)?;
        let calls = self.tool_calls.is_some();
        let result =
            self.tool_call_id.is_some() || self.tool_name.is_some() || self.is_error.is_some();
        if calls {
            check_belongs("toolCalls", Action::ToolCallRequest, self.action)?;
        }
        if result {
            check_belongs("toolCallId", Action::ToolResult, self.action)?;
        }
        if result && self.tool_call_id.is_none() {
            return Err(missing("toolCallId", Action::ToolResult));
        }
        if self.message.is_some() && (self.content.is_some() || calls || result) {
            return Err(Error::invalid(
                "message",
                "An event with a `message` can't have content or tool fields.",
            ));
        }
        // Every event records who caused it.
        let is_turns = |note: &Note| *note != Note::of(note.authority());
        if self.note.as_ref().is_some_and(is_turns) && !self.action.is_agents() {
            return Err(Error::invalid(
                "note",
                "Only events of the agent or a tool can have a `note` about a turn.",
            ));
        }
        Ok(())
    }
}

fn check_seq(field: &str, least: i64, seq: Count) -> Result<()> {
    if (least..=MAX_FILE_SEQ).contains(&seq.0) {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!("`{field}` must be an integer from {least} to {MAX_FILE_SEQ}."),
    ))
}

/// A summary over a range of a path.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompactionLine {
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub id: Id,
    pub from_id: Id,
    pub to_id: Id,
    pub summary: String,
    pub tokens_before: Option<Count>,
    pub tokens_after: Option<Count>,
    pub created_at: FileTime,
}

/// One entry of the feed. A client that follows the feed can continue from its cursor after an
/// import.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeLine {
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub cursor: Count,
    pub change: String,
    pub id: Option<Id>,
    pub changed_at: FileTime,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndLine {
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub events: Count,
    /// The leaf of the chosen branch; `null`: none was chosen, so the newest event's
    /// branch is used.
    pub leaf_id: Option<Id>,
}

/// Renders a line as JSON with a line break at its end. A line break outside a string
/// means the same as a space, and JSON strings contain no raw line breaks.
pub fn render(line: &impl Serialize) -> Result<String> {
    render_within(line, 0)
}

/// Renders a line of about this many bytes. Reserves the memory first: a text that grows
/// by doubling takes up to three times its size while it grows.
pub fn render_within(line: &impl Serialize, bytes: usize) -> Result<String> {
    let mut json = json::encode_within(line, bytes)?.into_bytes();
    for byte in &mut json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    json.push(b'\n');
    String::from_utf8(json).map_err(|error| Error::storage(error.to_string()))
}

/// A time that an agent's clock gave.
#[derive(Clone, Copy, Serialize)]
pub struct FileTime(pub i64);

impl FileTime {
    /// Converts a stored time for a line.
    pub fn of(ms: i64) -> Self {
        Self(ms.clamp(0, MAX_FILE_TIME_MS))
    }
}

impl<'de> Deserialize<'de> for FileTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 0..=MAX_FILE_TIME_MS).map(Self)
    }
}

/// Converts a stored number for a line.
pub fn count(value: i64) -> Count {
    Count(value.clamp(0, MAX_INTEGER))
}
