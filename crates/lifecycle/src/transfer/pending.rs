//! An event of an import, after its line was read and before its row is written.

use super::lines::EventLine;
use access::Authority;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, Tree};
use conversation::log::event::{MessageText, NewEvent};
use conversation::log::media::StrippedText;
use conversation::log::note::Note;
use conversation::log::row_draft::RowDraft;
use conversation::log::tokens;
use conversation::messages::parse::{MessageSource, parse_message, without_reserved};

/// How a sender's lines are read.
pub struct LineRules<'a> {
    pub source: MessageSource,
    pub reserved_keys: &'a [Id],
    /// Limits a time that no operation lets a caller choose.
    pub time: &'a dyn Fn(i64) -> i64,
    /// Whether provider data is accepted: a provider may treat it as more than text.
    pub accepts_provider_data: bool,
    /// The sender's authority, if the file is not trusted about who caused a text. The file's
    /// authority then can only restrict it.
    pub authority: Option<&'a Authority>,
}

fn is_same_json(one: &Option<String>, other: &Option<String>) -> bool {
    let value = |text: &Option<String>| {
        let Tree(value) = json::decode(text.as_deref()?).ok()?;
        Some(value)
    };
    value(one).is_some_and(|one| Some(one) == value(other))
}

/// An event that waits for its batch.
pub struct PendingEvent {
    pub line_number: u64,
    pub seq: i64,
    pub id: Id,
    pub parent_id: Option<Id>,
    pub event: NewEvent,
    tool: Option<String>,
    note: Option<String>,
    created_at: i64,
    written_at: i64,
}

fn note_of(note: Note, reading: &LineRules<'_>) -> Note {
    // No call continues from a file: its author would choose the arguments of tools.
    let mut note = note.closed();
    note.provider_data = note.provider_data.filter(|_| reading.accepts_provider_data);
    let Some(authority) = reading.authority else {
        return note;
    };
    let memory_scope = note.memory_scope.min(authority.memory_scope);
    note.with_authority(Authority {
        memory_scope,
        ..authority.clone()
    })
}

impl PendingEvent {
    /// Parses the line as strictly as the operations that append messages and events.
    pub fn from_line(line: EventLine, line_number: u64, reading: &LineRules<'_>) -> Result<Self> {
        let mut event = NewEvent::new(line.action);
        event.content = line.content;
        event.tool_calls = line.tool_calls;
        event.tool_call_id = line.tool_call_id;
        event.tool_name = line.tool_name;
        event.is_error = line.is_error;
        event.metadata = match reading.source {
            MessageSource::Client => line
                .metadata
                .and_then(|metadata| without_reserved(&metadata, reading.reserved_keys)),
            MessageSource::Server => line.metadata,
        };
        if let Some(message) = line.message {
            let reserved_keys = || Ok(reading.reserved_keys);
            let parsed = parse_message(&message, reading.source, &reserved_keys)?;
            if parsed.action != line.action {
                return Err(Error::invalid(
                    "action",
                    format!(
                        "`action` must be {} for a message of this role.",
                        parsed.action.name()
                    ),
                ));
            }
            event.content = Some(parsed.content);
            event.message = Some(parsed.text);
        }
        let carries_tool = event.tool_calls.is_some() || event.tool_call_id.is_some();
        let tool = event.tool_json().filter(|_| carries_tool);
        Ok(Self {
            line_number,
            seq: line.seq.0,
            id: line.id,
            parent_id: line.parent_id,
            event,
            tool,
            note: note_of(line.note.unwrap_or_default(), reading).json(),
            created_at: line.created_at.0,
            written_at: (reading.time)(line.written_at.0),
        })
    }

    /// Whether both lines have the same content. The order of a JSON object's fields does not
    /// count.
    pub fn is_same(&self, other: &Self) -> bool {
        let texts = |pending: &Self| {
            [
                pending.tool.clone(),
                pending.note.clone(),
                pending
                    .event
                    .metadata
                    .as_ref()
                    .map(|metadata| metadata.as_str().to_owned()),
                pending
                    .message()
                    .map(|message| format!("{{{}}}", message.fields)),
            ]
        };
        let facts = |pending: &Self| {
            let Self {
                seq,
                id,
                parent_id,
                event,
                created_at,
                written_at,
                ..
            } = pending;
            let ids = (*seq, id.clone(), parent_id.clone());
            let times = (*created_at, *written_at);
            (ids, event.action, event.content.clone(), times)
        };
        facts(self) == facts(other)
            && texts(self)
                .iter()
                .zip(&texts(other))
                .all(|(one, other)| one == other || is_same_json(one, other))
    }

    fn message(&self) -> Option<&MessageText> {
        self.event.message.as_ref()
    }

    pub fn bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        length(self.event.content.as_deref())
            + length(self.tool.as_deref())
            + length(self.event.metadata.as_ref().map(JsonObject::as_str))
            + length(self.note.as_deref())
            + length(self.message().map(|message| message.fields.as_str()))
    }

    pub fn draft<'a>(
        &'a self,
        cut: Option<&'a StrippedText<'a>>,
        parent_seq: i64,
        newest_seq: i64,
    ) -> RowDraft<'a> {
        RowDraft {
            seq: self.seq,
            id: self.id.as_str(),
            id_indexed: u8::from(!self.id.leads_to(self.seq)),
            is_id_unchecked: false,
            parent_seq,
            parent_id: self.parent_id.as_ref().map(Id::as_str),
            is_branch: u8::from(parent_seq != newest_seq),
            may_split: parent_seq != newest_seq,
            action: self.event.action,
            content: self.event.content.as_deref(),
            tool: self.tool.as_deref(),
            metadata: self.event.metadata.as_ref().map(JsonObject::as_str),
            message: cut.map(|cut| cut.text.as_ref()),
            media: cut.and_then(|cut| cut.positions.as_deref()),
            message_dated: u8::from(self.message().is_some_and(|message| message.is_dated)),
            note: self.note.as_deref(),
            ends_turn: None,
            tokens: tokens::of_event(&self.event),
            created_at: self.created_at,
            written_at: self.written_at,
            payloads: cut.map_or(&[], |cut| cut.payloads.as_slice()),
            cut_bytes: cut.map_or(0, |cut| cut.bytes),
        }
    }
}
