//! One row of the log, including its bodies, and the statements that load it.
//!
//! Long bodies are stored in slices, and inline media in rows of their own. Loading
//! restores both.

use std::fmt::Display;
use std::sync::LazyLock;

use crate::log::event::IS_RUN_MEMBER;
use crate::log::media;
use crate::log::note::Note;
use crate::log::slices::load_slices;
use crate::log::tool::RenderedTool;
use base::action::{Action, StoredAction};
use base::columns::find;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::row;

/// One row of a path, including its bodies.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub seq: i64,
    pub parent_seq: i64,
    pub id: String,
    pub action: StoredAction,
    pub tool: Option<String>,
    pub metadata: Option<String>,
    pub is_dated: bool,
    pub created_at: i64,
    /// The bytes of this row's bodies that are in slices; 0: the row is complete.
    pub sliced_bytes: i64,
    /// The positions where media was cut out of the message. They are kept when the media
    /// is restored.
    pub media: Option<String>,
    /// JSON: see [`Note`].
    pub note: Option<String>,
    pub content: String,
    pub message: Option<String>,
    /// Whether this event starts a new message within a run: see `boundary.rs`.
    pub splits_run: bool,
}

/// The bytes of everything in an event `e`, except its media's payloads.
pub const ROW_BYTES: &str =
    "coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.message), 0)
    + coalesce(octet_length(e.tool), 0) + coalesce(octet_length(e.metadata), 0)
    + coalesce(octet_length(e.note), 0) + coalesce(octet_length(e.media), 0) + e.sliced_bytes";

row! {
    /// The position of an event `e` in its tree.
    pub struct TreePosition {
        pub seq: i64 = "e.seq",
        pub parent_seq: i64 = "e.parent_seq",
        /// Whether the parent is not the row directly before this event's.
        pub is_branch: bool = "e.is_branch",
    }
}

row! {
    /// An event `e` without its bodies. Begins like [`TreePosition`].
    pub struct EventLink {
        pub seq: i64 = "e.seq",
        pub parent_seq: i64 = "e.parent_seq",
        /// Whether the parent is not the row directly before this event's.
        pub is_branch: bool = "e.is_branch",
        /// Whether this event forms one message with adjacent events of its kind.
        pub is_run_member: bool = IS_RUN_MEMBER,
        /// Whether this event starts a new message within a run: see `boundary.rs`.
        pub splits_run: bool = "e.splits_run",
        pub id: String = "e.id",
    }
}

row! {
    /// The columns of an event `e`. `body` gives the SQL for the column of a body.
    for EventRow(body: impl Fn(&str) -> String) {
        position: TreePosition = TreePosition::COLUMNS,
        id: String = "e.id",
        action: StoredAction = "e.action",
        tool: Option<String> = body("e.tool"),
        metadata: Option<String> = body("e.metadata"),
        is_dated: bool = "e.message_dated",
        created_at: i64 = "e.created_at",
        sliced_bytes: i64 = "e.sliced_bytes",
        media: Option<String> = body("e.media"),
        note: Option<String> = body("e.note"),
        content: Option<String> = body("e.content"),
        message: Option<String> = body("e.message"),
        splits_run: bool = "e.splits_run",
    }
    Ok(Self {
        seq: position.seq,
        parent_seq: position.parent_seq,
        id,
        action,
        tool,
        metadata,
        is_dated,
        created_at,
        sliced_bytes,
        media,
        note,
        content: content.unwrap_or_default(),
        message,
        splits_run,
    })
}

impl EventRow {
    /// Whether this event forms one message with adjacent events of its kind.
    pub fn is_run_member(&self) -> bool {
        self.message.is_none()
            && matches!(self.action, StoredAction::Known(action) if action.is_agents())
    }

    pub fn body_bytes(&self) -> usize {
        let texts = [
            &self.tool,
            &self.metadata,
            &self.media,
            &self.note,
            &self.message,
        ];
        let others = texts.into_iter().flatten().map(String::len);
        self.content.len() + others.sum::<usize>()
    }

    pub fn note(&self) -> Result<Note> {
        Note::parse(self.note.as_deref()).ok_or_else(|| self.damaged())
    }

    /// The call that this event answers, if the event is a result.
    pub fn answered_call(&self) -> Result<Option<String>> {
        match self
            .tool
            .as_deref()
            .filter(|_| self.action == Action::ToolResult)
        {
            Some(tool) => json::decode::<RenderedTool>(tool)
                .map(|tool| tool.tool_call_id)
                .map_err(|_| self.damaged()),
            None => Ok(None),
        }
    }

    /// The event's calls that the client or the user must answer.
    pub fn open_calls(&self) -> Result<impl Iterator<Item = String>> {
        let note = self.note()?;
        let questions = note.questions.into_iter();
        let awaiting = questions.filter(|(_, question)| question.open.is_some());
        let awaiting = awaiting.map(|(call_id, _)| call_id);
        Ok(note
            .client_calls
            .into_iter()
            .chain(note.approvals.into_keys())
            .chain(awaiting))
    }

    pub fn damaged(&self) -> Error {
        Error::corrupt_row(&self.id, "message")
    }
}

/// Statements that read many events omit longer bodies. If they are needed, another
/// statement reads the long event.
pub const INLINE_BYTES: usize = 64 << 10;

row! {
    /// A row of a statement that reads many events `e`: with NULL bodies if the event is long.
    /// `max_bytes` is SQL for the length limit of a short event.
    pub struct ShortRow(max_bytes: &dyn Display) {
        event: EventRow = EventRow::columns(
            |body| format!("iif({ROW_BYTES} <= {max_bytes}, {body}, NULL)")
        ),
        is_short: bool = format!("{ROW_BYTES} <= {max_bytes}"),
    }
}

/// The columns of a [`ShortRow`] with at most [`INLINE_BYTES`].
pub static INLINE_COLUMNS: LazyLock<String> = LazyLock::new(|| ShortRow::columns(&INLINE_BYTES));

impl ShortRow {
    /// The event, including its bodies.
    pub fn get(self, db: &dyn Database, session_id: &Id) -> Result<EventRow> {
        if self.is_short {
            complete(db, session_id, self.event)
        } else {
            get_event_row(db, session_id, self.event.seq)
        }
    }
}

pub fn find_event_row(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<EventRow>> {
    find_event_text(db, session_id, seq)?
        .map(|row| with_media(db, session_id, row))
        .transpose()
}

static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2",
        EventRow::columns(str::to_owned)
    )
});

/// Like [`find_event_row`], without media payloads, for readers that ignore media.
pub fn find_event_text(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<EventRow>> {
    find(db, &FIND, &[session_id.as_str().into(), seq.into()])?
        .map(|row| with_slices(db, session_id, row))
        .transpose()
}

/// Restores the slices and the media in the row.
pub fn complete(db: &dyn Database, session_id: &Id, row: EventRow) -> Result<EventRow> {
    with_media(db, session_id, with_slices(db, session_id, row)?)
}

pub fn with_media(db: &dyn Database, session_id: &Id, mut row: EventRow) -> Result<EventRow> {
    if let (Some(positions), Some(message)) = (&row.media, &row.message) {
        let restored = media::restore(db, session_id, message, positions)?;
        row.message = Some(restored.ok_or_else(|| Error::corrupt_row(&row.id, "media"))?);
    }
    Ok(row)
}

/// Restores the slices in the row.
pub fn with_slices(db: &dyn Database, session_id: &Id, mut row: EventRow) -> Result<EventRow> {
    if row.sliced_bytes == 0 {
        return Ok(row);
    }
    let mut fields = load_slices(db, session_id.as_str(), row.seq, row.message.as_deref())?;
    row.content = fields.remove("content").unwrap_or(row.content);
    row.tool = fields.remove("tool").or(row.tool);
    row.metadata = fields.remove("metadata").or(row.metadata);
    row.message = fields.remove("message").or(row.message);
    Ok(row)
}

pub fn get_event_row(db: &dyn Database, session_id: &Id, seq: i64) -> Result<EventRow> {
    find_event_row(db, session_id, seq)?
        .ok_or_else(|| Error::storage(format!("event {seq} is missing")))
}

pub fn get_event_text(db: &dyn Database, session_id: &Id, seq: i64) -> Result<EventRow> {
    find_event_text(db, session_id, seq)?
        .ok_or_else(|| Error::storage(format!("event {seq} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_walk_begin_with_the_place() {
        for columns in [EventLink::COLUMNS, &INLINE_COLUMNS] {
            assert!(columns.starts_with(TreePosition::COLUMNS), "{columns}");
        }
    }
}
