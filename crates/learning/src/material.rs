//! The input of a learning pass: the conversation's events after the learning position, a
//! bounded part of their texts, and the speaker of each.

use crate::capacity::{LINE_BYTES, RequestCapacity};
use access::Authority;
use base::action::{Action, Role, StoredAction};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use conversation::log::event_facts::{EventTime, load_times_after};
use conversation::log::learning_watermarks::LearningWatermark;
use conversation::log::row::find_event_text;
use conversation::log::tool::RenderedTool;
use conversation::session::learn_due::load_unknown_until;
use memory::origin::Origin;
use search::document::{EventText, text_of, written_text_of};

/// The most events of one pass, and the most bytes of their texts: about 6,000 tokens. A
/// longer history takes several passes.
const MAX_EVENTS: i64 = 200;
pub const MAX_PASS_BYTES: usize = 24 << 10;

/// How many characters of a text are shown: three quarters from its start, the rest from
/// its end.
const USER_CHARS: usize = 6_000;
const AGENT_CHARS: usize = 2_000;
const TOOL_CHARS: usize = 1_000;

/// In a small window, an event gets a third of the capacity in characters.
const MAX_CHAR_SHARE: usize = 3;

/// How many bytes of an event are read.
const MAX_READ_BYTES: usize = 256 << 10;

/// An event that is shown to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct MaterialEvent {
    pub seq: i64,
    pub id: String,
    /// The speaker.
    pub speaker: Origin,
    /// The tool's name.
    pub tool: Option<String>,
    pub text: String,
}

/// The input of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// The learning position before the pass.
    pub after_seq: i64,
    /// The last event that the pass covers, and the next learning position.
    pub to_seq: i64,
    /// The events with text.
    pub shown: Vec<MaterialEvent>,
    /// The authority of the caller who caused all of them.
    pub authority: Authority,
}

/// The next events after the learning position, as many as fit. `None`: there are none.
/// They end where another caller's messages start: a pass covers messages of one authority,
/// so no caller's words can confirm, taint or retract a fact together with another
/// caller's.
pub fn load_material(
    db: &dyn Database,
    session_id: &Id,
    watermark: &LearningWatermark,
    capacity: &RequestCapacity,
) -> Result<Option<Material>> {
    let times = load_times_after(db, session_id, watermark.learned_seq, MAX_EVENTS)?;
    let unknown_until = load_unknown_until(db)?;
    let mut material = Material {
        after_seq: watermark.learned_seq,
        to_seq: watermark.learned_seq,
        shown: Vec::new(),
        authority: Authority::default(),
    };
    let mut bytes = 0;
    let most_chars = capacity.events / MAX_CHAR_SHARE;
    for EventTime { seq, written_at } in times {
        let is_foreign = seq <= watermark.copied_seq || written_at <= unknown_until;
        if let Some((mut event, authority)) = load_event(db, session_id, seq, is_foreign)? {
            if material.shown.is_empty() {
                material.authority = authority;
            } else if material.authority != authority {
                break;
            }
            event.text = shortened(&event.text, most_chars);
            bytes += event.text.len();
            let lines = bytes + (material.shown.len() + 1) * LINE_BYTES;
            let is_full = bytes > MAX_PASS_BYTES || lines > capacity.events;
            if is_full && !material.shown.is_empty() {
                break;
            }
            material.shown.push(event);
        }
        material.to_seq = seq;
    }
    Ok((material.to_seq > material.after_seq).then_some(material))
}

/// The text of an event, and the authority that caused it. `None`: the event is not learned
/// from. Instructions, summaries and tool calls come from the operator and the agent
/// itself. `is_foreign`: the authority is unknown, because the event was imported or
/// copied, or comes from a build that did not store it.
fn load_event(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    is_foreign: bool,
) -> Result<Option<(MaterialEvent, Authority)>> {
    let Some(row) = find_event_text(db, session_id, seq)? else {
        return Ok(None);
    };
    let StoredAction::Known(action) = row.action else {
        return Ok(None);
    };
    let mut text = row.content.trim().to_owned();
    let (speaker, chars) = match action {
        Action::UserMessage => {
            let message = row.message.as_deref().filter(|_| text.is_empty());
            if let Some(message) = message {
                // The row of a long message omits the text and contains only the message.
                let written = written_text_of(message, MAX_READ_BYTES);
                text = written.trim().to_owned();
            }
            match message.filter(|_| text.is_empty()) {
                // A file's name and the content of data are not the user's words.
                Some(_) => (Origin::Import, USER_CHARS),
                None => (Origin::User, USER_CHARS),
            }
        }
        Action::AgentMessage => {
            // A message of the agent may contain the results of its tools.
            let whole = text_of(
                &EventText {
                    role: Role::Assistant,
                    content: &row.content,
                    message: row.message.as_deref(),
                    ..EventText::default()
                },
                MAX_READ_BYTES,
            );
            let has_more = row.message.is_some() && whole.trim() != text;
            if has_more {
                text = whole.trim().to_owned();
            }
            if has_more {
                (Origin::Tool, AGENT_CHARS)
            } else {
                (Origin::Agent, AGENT_CHARS)
            }
        }
        Action::ToolResult => (Origin::Tool, TOOL_CHARS),
        Action::ToolCallRequest | Action::SystemInstruction | Action::Compaction => {
            return Ok(None);
        }
    };
    if text.is_empty() && row.message.is_some() {
        // The row of a long message omits the text and contains only the message.
        let whole = EventText {
            message: row.message.as_deref(),
            ..EventText::default()
        };
        text = text_of(&whole, MAX_READ_BYTES).trim().to_owned();
    }
    if text.is_empty() {
        return Ok(None);
    }
    let tool = row
        .tool
        .as_deref()
        .and_then(|tool| json::decode::<RenderedTool>(tool).ok());
    let authority = row.note()?.authority();
    let event = MaterialEvent {
        seq,
        id: row.id,
        speaker: match (is_foreign, speaker) {
            (true, Origin::User | Origin::Agent) => Origin::Import,
            (_, speaker) => speaker,
        },
        tool: tool.and_then(|tool| tool.tool_name),
        text: shortened(&text, chars),
    };
    Ok(Some((event, authority)))
}

/// The start and the end of a text, if it is too long.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let tail = limit / 4;
    let head: String = text.chars().take(limit - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head}\n[… {} characters …]\n{end}", count - limit)
}
