//! A row of the log before it is written: its values, and the texts that are moved into slices.

use super::boundary;
use super::media::{Payload, StrippedText};
use super::slices::{MAX_EVENT_BYTES, Sliced};
use super::totals::PathTotals;
use base::action::Action;
use base::database::{MAX_VALUE_BYTES, SqlValue};
use base::error::{Error, Result};
use base::ids::Id;
use base::rows::list_of;
use search::document::EventText;

/// A row of the log with complete bodies, of any length.
pub struct RowDraft<'a> {
    pub seq: i64,
    pub id: &'a str,
    pub id_indexed: u8,
    /// Whether another event may have this id. If one does, the row is not written.
    pub is_id_unchecked: bool,
    pub parent_seq: i64,
    pub parent_id: Option<&'a str>,
    pub is_branch: u8,
    /// Whether this event may split a run, because it starts a branch or a summary ends at
    /// its parent. The log then decides whether it does.
    pub may_split: bool,
    pub action: Action,
    pub content: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub metadata: Option<&'a str>,
    pub message: Option<&'a str>,
    /// Positions in the message where media was cut out.
    pub media: Option<&'a str>,
    pub message_dated: u8,
    pub note: Option<&'a str>,
    pub ends_turn: Option<&'a str>,
    /// The event's own estimated tokens.
    pub tokens: i64,
    pub created_at: i64,
    pub written_at: i64,
    /// The media that was cut out of the message.
    pub payloads: &'a [Payload<'a>],
    /// How many bytes of media were cut out.
    pub cut_bytes: usize,
}

/// A row of the log, prepared for the INSERT statement.
pub struct NewRow<'a> {
    /// The values of the row itself.
    pub(super) columns: RowDraft<'a>,
    /// Bodies that don't fit in the row.
    pub(super) sliced: Vec<Sliced<'a>>,
    /// A `content` that is omitted from the row, because the message contains it.
    text: &'a str,
    pub(super) splits_run: bool,
    pub(super) totals: PathTotals,
}

impl<'a> RowDraft<'a> {
    /// A message that replaces an event's texts. `rewrite_bodies` leaves the event's
    /// position in the tree unchanged. `tokens`: its own estimated tokens.
    pub fn of_message(
        seq: i64,
        id: &'a str,
        action: Action,
        cut: &'a StrippedText<'a>,
        tokens: i64,
    ) -> Self {
        Self {
            seq,
            id,
            id_indexed: 0,
            is_id_unchecked: false,
            parent_seq: 0,
            parent_id: None,
            is_branch: 0,
            may_split: false,
            action,
            content: None,
            tool: None,
            metadata: None,
            message: Some(&cut.text),
            media: cut.positions.as_deref(),
            message_dated: 0,
            note: None,
            ends_turn: None,
            tokens,
            created_at: 0,
            written_at: 0,
            payloads: &cut.payloads,
            cut_bytes: cut.bytes,
        }
    }

    /// Moves texts that are too long for the row into slices. `field` names the event in
    /// the request, for the error if the event is too large.
    pub fn fit(self, field: &str) -> Result<NewRow<'a>> {
        let total = self.sent_bytes();
        if total > MAX_EVENT_BYTES {
            return Err(
                Error::payload_too_large("The event", MAX_EVENT_BYTES, total).with_field(field),
            );
        }
        Ok(self.in_slices())
    }

    /// Like [`Self::fit`], for an event that is already stored, of any length.
    pub fn in_slices(mut self) -> NewRow<'a> {
        let mut text = "";
        // The message contains its text, so `content` is omitted.
        if self.body_bytes() > MAX_VALUE_BYTES
            && self.message.is_some()
            && let Some(content) = self.content.take()
        {
            text = content;
        }
        let mut sliced = Vec::new();
        while self.body_bytes() > MAX_VALUE_BYTES {
            let Some((field, column)) = self.longest_body() else {
                break;
            };
            if let Some(text) = column.take() {
                // An empty string marks that this event has a message.
                *column = (field == "message").then_some("");
                sliced.push(Sliced { field, text });
            }
        }
        NewRow {
            columns: self,
            sliced,
            text,
            splits_run: false,
            totals: PathTotals::default(),
        }
    }

    fn longest_body(&mut self) -> Option<(&'static str, &mut Option<&'a str>)> {
        [
            ("content", &mut self.content),
            ("tool", &mut self.tool),
            ("metadata", &mut self.metadata),
            ("message", &mut self.message),
        ]
        .into_iter()
        .max_by_key(|(_, text)| text.map_or(0, str::len))
    }

    fn body_bytes(&self) -> usize {
        [self.content, self.tool, self.metadata, self.message]
            .iter()
            .flatten()
            .map(|text| text.len())
            .sum()
    }

    /// Whether this event forms one message with adjacent events of its kind.
    pub(super) fn is_run_member(&self) -> bool {
        self.message.is_none() && self.action.is_agents()
    }

    /// The bytes that the caller sent: the message includes its text and its media.
    fn sent_bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        let repeated = self.message.and(self.content);
        self.body_bytes() - length(repeated) + self.cut_bytes
    }

    /// Whether the row directly follows the row `before` and starts no branch.
    pub(super) fn follows(&self, before: &Self) -> bool {
        self.seq == before.seq + 1
            && self.parent_seq == before.seq
            && self.parent_id == Some(before.id)
            && self.is_branch == 0
    }

    /// Whether the values that rows of one append usually share are equal to those of
    /// `other`.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.id_indexed == other.id_indexed
            && self.created_at == other.created_at
            && self.written_at == other.written_at
    }
}

impl<'a> NewRow<'a> {
    /// The event's text for the search index, bodies in slices included.
    pub(super) fn event_text(&self) -> EventText<'a> {
        let row = &self.columns;
        let sliced = |name: &str| {
            self.sliced
                .iter()
                .find(|sliced| sliced.field == name)
                .map(|sliced| sliced.text)
        };
        EventText {
            role: row.action.role(),
            content: sliced("content").or(row.content).unwrap_or(self.text),
            tool: sliced("tool").or(row.tool),
            metadata: sliced("metadata").or(row.metadata),
            message: sliced("message").or(row.message),
            created_at: row.created_at,
            session_name: None,
        }
    }

    /// Whether the row contains the whole event: no slices, no media.
    pub(super) fn is_whole(&self) -> bool {
        self.sliced.is_empty() && self.columns.payloads.is_empty()
    }

    /// Whether the row has none of the rarely used values.
    pub(super) fn has_no_rare_values(&self) -> bool {
        let row = &self.columns;
        self.sliced_bytes() == 0
            && row.media.is_none()
            && row.note.is_none()
            && row.ends_turn.is_none()
            && !self.splits_run
    }

    /// The position of an event of a run, if the event may split the run.
    pub(super) fn run_position(&self) -> Option<boundary::NewPosition> {
        let row = &self.columns;
        (row.may_split && row.is_run_member()).then_some((row.seq, row.parent_seq, row.action))
    }

    /// Bytes of the bodies that are not in the row.
    pub(super) fn sliced_bytes(&self) -> usize {
        let sliced = self.sliced.iter().map(|sliced| sliced.text.len());
        sliced.sum::<usize>() + self.text.len()
    }

    /// The approximate size of the row in the table.
    pub(super) fn bytes(&self) -> usize {
        let row = &self.columns;
        let length = |text: Option<&str>| text.map_or(0, str::len);
        row.body_bytes()
            + row.id.len()
            + length(row.note)
            + length(row.ends_turn)
            + length(row.parent_id)
            + length(row.media)
    }

    pub(super) fn values(&self, session_id: &Id) -> [SqlValue; 22] {
        let row = &self.columns;
        [
            session_id.as_str().into(),
            row.seq.into(),
            row.id.into(),
            u32::from(row.id_indexed).into(),
            row.parent_seq.into(),
            row.parent_id.into(),
            u32::from(row.is_branch).into(),
            row.action.name().into(),
            row.content.into(),
            row.tool.into(),
            row.metadata.into(),
            row.message.into(),
            u32::from(row.message_dated).into(),
            (self.sliced_bytes() as i64).into(),
            row.created_at.into(),
            row.written_at.into(),
            row.media.into(),
            row.note.into(),
            row.ends_turn.into(),
            self.splits_run.into(),
            self.totals.messages.into(),
            self.totals.tokens.into(),
        ]
    }

    /// The values of a row without rarely used ones. `None`: the row has some.
    pub(super) fn common_values(&self, session_id: &Id) -> Option<[SqlValue; 14]> {
        let row = &self.columns;
        let is_common = self.has_no_rare_values()
            && row.message_dated == 0
            && row.tool.is_none()
            && row.metadata.is_none();
        if !is_common {
            return None;
        }
        let [
            session_id,
            seq,
            id,
            id_indexed,
            parent_seq,
            parent_id,
            is_branch,
            action,
            content,
            _tool,
            _metadata,
            message,
            _message_dated,
            _sliced_bytes,
            created_at,
            written_at,
            _media,
            _note,
            _ends_turn,
            _splits_run,
            path_messages,
            path_tokens,
        ] = self.values(session_id);
        Some([
            session_id,
            seq,
            id,
            id_indexed,
            parent_seq,
            parent_id,
            is_branch,
            action,
            content,
            message,
            created_at,
            written_at,
            path_messages,
            path_tokens,
        ])
    }

    /// The row as a JSON list without its session: first the values that every row has,
    /// then the rarely used ones. The list ends with the last value that is set.
    pub(super) fn list(&self, session_id: &Id) -> String {
        let [
            _,
            seq,
            id,
            id_indexed,
            parent_seq,
            parent_id,
            is_branch,
            action,
            content,
            tool,
            metadata,
            message,
            message_dated,
            sliced_bytes,
            created_at,
            written_at,
            media,
            note,
            ends_turn,
            splits_run,
            path_messages,
            path_tokens,
        ] = self.values(session_id);
        let values = [
            seq,
            id,
            id_indexed,
            parent_seq,
            parent_id,
            is_branch,
            action,
            content,
            message_dated,
            sliced_bytes,
            created_at,
            written_at,
            splits_run,
            path_messages,
            path_tokens,
            tool,
            metadata,
            message,
            media,
            note,
            ends_turn,
        ];
        let last_value = values.iter().rposition(|value| *value != SqlValue::Null);
        let length = last_value.map_or(0, |last| last + 1);
        list_of(values.get(..length).unwrap_or_default())
    }
}
