//! Writes rows into the log, with as few statements as possible, each within the engine's
//! limits.

use std::collections::BTreeMap;

use super::boundary;
use super::media::{self, Payload, StrippedText};
use super::slices::{MAX_EVENT_BYTES, Sliced, write_slices};
use super::totals::{OwnShare, PathEnd, PathEnds, PathTotals};
use crate::index::{self, SessionIndex};
use base::action::Action;
use base::database::{Database, MAX_LIST_BYTES, MAX_VALUE_BYTES, SqlValue, atomically};
use base::error::{Error, Result};
use base::ids::Id;
use base::rows::list_of;
use search::document::EventText;

/// A row of the log with complete bodies, of any length.
pub struct RowDraft<'a> {
    pub seq: i64,
    pub id: &'a str,
    pub id_indexed: u8,
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
    splits_run: bool,
    totals: PathTotals,
}

/// The head of the INSERT statements.
macro_rules! insert {
    () => {
        "
    INSERT INTO cf_agents_events
           (session_id, seq, id, id_indexed, parent_seq, parent_id, is_branch, action, content,
            tool, metadata, message, message_dated, sliced_bytes, created_at, written_at, media, note,
            ends_turn, splits_run, path_messages, path_tokens, more_messages, more_tokens)"
    };
}

pub(super) const INSERT: &str = insert!();

/// Inserts [`NewRow::values`].
const INSERT_ONE: &str = concat!(
    insert!(),
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
              ?19, ?20, ?21, ?22, 0, 0)"
);

/// Inserts [`NewRow::usual_values`]. Ten parameters fewer save a sixth of the statement's time.
const INSERT_USUAL: &str = concat!(
    insert!(),
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, NULL, ?10, 0, 0, ?11, ?12, NULL, NULL,
              NULL, 0, ?13, ?14, 0, 0)"
);

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
            parent_seq: 0,
            parent_id: None,
            is_branch: 0,
            may_split: false,
            action,
            content: None,
            tool: None,
            metadata: None,
            message: Some(&cut.text),
            media: cut.places.as_deref(),
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
    fn is_run_member(&self) -> bool {
        self.message.is_none() && self.action.is_agents()
    }

    /// The bytes that the caller sent: the message includes its text and its media.
    fn sent_bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        let said_twice = self.message.and(self.content);
        self.body_bytes() - length(said_twice) + self.cut_bytes
    }

    /// Whether the row directly follows the row `before` and starts no branch.
    fn follows(&self, before: &Self) -> bool {
        self.seq == before.seq + 1
            && self.parent_seq == before.seq
            && self.parent_id == Some(before.id)
            && self.is_branch == 0
    }

    /// Whether the values that rows of one append usually share are equal to those of
    /// `other`.
    fn is_alike(&self, other: &Self) -> bool {
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
    fn is_whole(&self) -> bool {
        self.sliced.is_empty() && self.columns.payloads.is_empty()
    }

    /// Whether the row has none of the rarely used values.
    fn has_no_rare_values(&self) -> bool {
        let row = &self.columns;
        self.sliced_bytes() == 0
            && row.media.is_none()
            && row.note.is_none()
            && row.ends_turn.is_none()
            && !self.splits_run
    }

    /// The position of an event of a run, if the event may split the run.
    fn place(&self) -> Option<boundary::NewPlace> {
        let row = &self.columns;
        (row.may_split && row.is_run_member()).then_some((row.seq, row.parent_seq, row.action))
    }

    /// Bytes of the bodies that are not in the row.
    pub(super) fn sliced_bytes(&self) -> usize {
        let sliced = self.sliced.iter().map(|sliced| sliced.text.len());
        sliced.sum::<usize>() + self.text.len()
    }

    /// The approximate size of the row in the table.
    fn bytes(&self) -> usize {
        let row = &self.columns;
        let length = |text: Option<&str>| text.map_or(0, str::len);
        row.body_bytes()
            + row.id.len()
            + length(row.note)
            + length(row.ends_turn)
            + length(row.parent_id)
            + length(row.media)
    }

    fn values(&self, session_id: &Id) -> [SqlValue; 22] {
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

    /// The values of a row that has no others than most rows have.
    fn usual_values(&self, session_id: &Id) -> Option<[SqlValue; 14]> {
        let row = &self.columns;
        let is_usual = self.has_no_rare_values()
            && row.message_dated == 0
            && row.tool.is_none()
            && row.metadata.is_none();
        is_usual.then(|| {
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
                row.message.into(),
                row.created_at.into(),
                row.written_at.into(),
                self.totals.messages.into(),
                self.totals.tokens.into(),
            ]
        })
    }

    /// The row as a JSON list without its session: first the values that every row has,
    /// then the rarely used ones. The list ends with the last value that is set.
    fn list(&self, session_id: &Id) -> String {
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
        let there = values.iter().rposition(|value| *value != SqlValue::Null);
        let length = there.map_or(0, |last| last + 1);
        list_of(values.get(..length).unwrap_or_default())
    }
}

/// Writes all rows or none. `ends`: events that they may follow, as far as they were read already.
/// `place` is the session's state in the search index.
pub fn write_rows(
    db: &dyn Database,
    session_id: &Id,
    (mut rows, ends): (Vec<NewRow<'_>>, &[PathEnd]),
    place: Option<&SessionIndex>,
) -> Result<()> {
    let asked: Vec<boundary::NewPlace> = rows.iter().filter_map(NewRow::place).collect();
    let splitting = boundary::find_splitting(db, session_id, &asked)?;
    for row in &mut rows {
        row.splits_run = splitting.contains(&row.columns.seq);
    }
    add_up(db, session_id, &mut rows, ends)?;
    let branches = branches(&rows);
    let batches = batches(&rows);
    match batches.as_slice() {
        [] => Ok(()),
        // A single statement is atomic without a transaction.
        [batch] if place.is_none() && branches.is_empty() && batch.iter().all(NewRow::is_whole) => {
            write_batch(db, session_id, batch)
        }
        several => atomically(db, || {
            for batch in several {
                write_batch(db, session_id, batch)?;
                for new in *batch {
                    let row = &new.columns;
                    write_slices(db, session_id, row.seq, &new.sliced)?;
                    media::write(db, session_id, row.seq, row.payloads)?;
                }
            }
            for (parent_seq, branch) in &branches {
                boundary::update_sibling_boundaries(
                    db,
                    session_id,
                    *parent_seq,
                    &branch.seqs,
                    branch.has_run_member,
                )?;
            }
            if let (Some(place), Some(first)) = (place, rows.first())
                && place.admit(db, first.columns.seq)?
            {
                let mut writer = index::IndexWriter::new(db);
                for row in &rows {
                    writer.add(place.number, row.columns.seq, &row.event_text())?;
                }
                writer.flush()?;
            }
            Ok(())
        }),
    }
}

/// Sets the totals of the paths to these rows.
fn add_up(
    db: &dyn Database,
    session_id: &Id,
    rows: &mut [NewRow<'_>],
    ends: &[PathEnd],
) -> Result<()> {
    let first_seq = rows.first().map_or(0, |row| row.columns.seq);
    let parents = rows.iter().map(|row| row.columns.parent_seq);
    let mut ends = PathEnds::load(
        db,
        session_id,
        ends,
        parents.filter(|parent_seq| *parent_seq < first_seq),
    )?;
    for new in rows {
        let row = &new.columns;
        let own = OwnShare {
            is_run_member: row.is_run_member(),
            splits_run: new.splits_run,
            tokens: row.tokens,
        };
        new.totals = ends.follow(row.parent_seq, row.seq, own);
    }
    Ok(())
}

/// New branches below one event.
#[derive(Default)]
struct NewBranches {
    seqs: Vec<i64>,
    has_run_member: bool,
}

/// The events among these that start branches, by parent. Roots are excluded, because they
/// split nothing.
fn branches(rows: &[NewRow<'_>]) -> BTreeMap<i64, NewBranches> {
    let mut branches: BTreeMap<i64, NewBranches> = BTreeMap::new();
    for NewRow { columns: row, .. } in rows {
        if row.is_branch == 1 && row.parent_seq != 0 {
            let branch = branches.entry(row.parent_seq).or_default();
            branch.seqs.push(row.seq);
            branch.has_run_member |= row.is_run_member();
        }
    }
    branches
}

/// Splits rows into batches of one statement each. A batch's JSON stays below the
/// engine's value limit. A row too long for a batch is written alone, column by column.
fn batches<'a, 'b>(rows: &'b [NewRow<'a>]) -> Vec<&'b [NewRow<'a>]> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (index, row) in rows.iter().enumerate() {
        // Escaping takes at most six bytes per byte; names and numbers take 300 bytes.
        let size = row.bytes() * 6 + 300;
        if bytes + size > MAX_LIST_BYTES && index > start {
            batches.extend(rows.get(start..index));
            start = index;
            bytes = 0;
        }
        bytes += size;
    }
    batches.extend(rows.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

fn write_batch(db: &dyn Database, session_id: &Id, batch: &[NewRow<'_>]) -> Result<()> {
    if let [row] = batch {
        return match row.usual_values(session_id) {
            Some(values) => db.run(INSERT_USUAL, &values),
            None => db.run(INSERT_ONE, &row.values(session_id)),
        };
    }
    if let Some((sql, params)) = as_values(session_id, batch) {
        return db.run(&sql, &params);
    }
    let lists: Vec<String> = batch.iter().map(|row| row.list(session_id)).collect();
    let json = format!("[{}]", lists.join(","));
    let sql = format!(
        "{INSERT}
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                value ->> 5, value ->> 6, value ->> 7, value ->> 15, value ->> 16,
                value ->> 17, value ->> 8, value ->> 9, value ->> 10, value ->> 11,
                value ->> 18, value ->> 19, value ->> 20, value ->> 12, value ->> 13,
                value ->> 14, 0, 0
           FROM json_each(?2)"
    );
    db.run(&sql, &[session_id.as_str().into(), json.into()])
}

/// The most rows that one statement takes as values. Each row count needs its own
/// statement, which the engine prepares once. A row takes up to seven parameters, and all
/// rows share eight, which stays below the engine's limit of a hundred.
const MAX_ROWS_AS_VALUES: usize = 13;

/// The statement for the fast path, and its parameters. `None`: a row doesn't qualify. Rows
/// qualify if they follow each other directly and share their common values. Binding values
/// takes the engine half the time of reading the rows from JSON.
fn as_values(session_id: &Id, batch: &[NewRow<'_>]) -> Option<(String, Vec<SqlValue>)> {
    let first = &batch.first()?.columns;
    let follows = batch.windows(2).all(|pair| match pair {
        [before, row] => row.columns.follows(&before.columns),
        _ => false,
    });
    let is_plain = |row: &NewRow<'_>| {
        row.has_no_rare_values() && row.columns.message.is_none() && row.columns.is_alike(first)
    };
    if batch.len() > MAX_ROWS_AS_VALUES || !follows || !batch.iter().all(is_plain) {
        return None;
    }
    let rows = || batch.iter().map(|row| &row.columns);
    let is_there = [
        rows().any(|row| row.tool.is_some()),
        rows().any(|row| row.metadata.is_some()),
    ];
    let per_row = 5 + is_there.iter().filter(|is_there| **is_there).count();
    let mut sql = format!("{INSERT} VALUES ");
    let mut params = vec![
        session_id.as_str().into(),
        first.seq.into(),
        u32::from(first.id_indexed).into(),
        first.parent_seq.into(),
        first.parent_id.into(),
        u32::from(first.is_branch).into(),
        first.created_at.into(),
        first.written_at.into(),
    ];
    for (index, new) in batch.iter().enumerate() {
        let row = &new.columns;
        let id = params.len() + 1;
        let parent = match index.checked_sub(1) {
            None => "?4, ?5, ?6".to_owned(),
            Some(before) => format!("?2 + {before}, ?{}, 0", id - per_row),
        };
        let mut next = id + 4;
        let columns = is_there.map(|is_there| {
            if !is_there {
                "NULL".to_owned()
            } else {
                next += 1;
                format!("?{next}")
            }
        });
        let comma = if index == 0 { "" } else { ", " };
        sql.push_str(&format!(
            "{comma}(?1, ?2 + {index}, ?{id}, ?3, {parent}, ?{}, ?{}, {}, NULL, 0, 0, ?7, ?8, NULL, NULL, NULL, 0, ?{}, ?{}, 0, 0)",
            id + 1,
            id + 2,
            columns.join(", "),
            id + 3,
            id + 4,
        ));
        params.extend([
            row.id.into(),
            row.action.name().into(),
            row.content.into(),
            new.totals.messages.into(),
            new.totals.tokens.into(),
        ]);
        let bodies = [row.tool, row.metadata].into_iter().zip(is_there);
        let there = bodies.filter(|(_, is_there)| *is_there);
        params.extend(there.map(|(body, _)| SqlValue::from(body)));
    }
    Some((sql, params))
}
