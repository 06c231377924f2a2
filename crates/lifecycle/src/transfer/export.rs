//! Exports a session, one page of lines at a time. Each page reads a bounded number of
//! rows, and only when the reader requests it, so a slow reader costs nothing.
//!
//! The export covers the rows that existed when it started. Events deleted since then are
//! omitted. Events changed since then, and the session's memory, appear as they are when
//! their page is read.

use std::collections::VecDeque;

use crate::transfer::{PAGE_BYTES, add_rows};

use super::export_rows::HeadRow;
use super::lines::{
    ChangeLine, CompactionLine, EndLine, EventOut, FileTime, LineKind, count, render, render_within,
};
use super::memory::export::MemoryExport;
use base::action::Action;
use base::database::{Database, Row};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, RawValue, ReadError};
use conversation::log::find::find_seqs;
use conversation::log::heads;
use conversation::log::note::Note;
use conversation::log::row::TreePosition;
use conversation::log::tool::StoredTool;
use conversation::log::whole_rows::{self, WholeRow};
use conversation::messages::tree::overlays;
use conversation::session::changes::load_stored;

/// Capacity for a line's ids, times and field names, in addition to its bodies.
const LINE_OVERHEAD_BYTES: usize = 2 << 10;

/// Rows per statement. With bodies of at most `INLINE_BYTES` each, 8 MiB.
const MAX_BATCH: i64 = 128;

/// Feed entries per statement. The entries are small.
const CHANGES_BATCH: i64 = 1000;

/// The section to write next.
enum ExportSection {
    Session(String),
    Events { after_seq: i64 },
    Compactions,
    Changes { after_cursor: i64 },
    Memory(MemoryExport),
    End,
    Done,
}

/// A position in a session's events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventsPosition {
    /// The `seq` of the last event before the position.
    pub seq: i64,
    /// The number of events before the position.
    pub events: i64,
    /// `None`: an earlier build wrote the position, without this field.
    pub end: Option<ExportEnd>,
}

/// The newest rows when an export started. A resumed export excludes later rows, because
/// the `session` line of the first part was written without them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExportEnd {
    pub seq: i64,
    pub cursor: i64,
}

pub struct Export {
    session_id: Id,
    /// The session's number and creation time. Both are needed to distinguish it from a
    /// later session with the same id, because numbers are reused.
    number: i64,
    created_at: i64,
    last: ExportEnd,
    /// Whether the session had summaries and memory when the export started.
    has_summaries: bool,
    has_memory: bool,
    chosen_leaf: Option<Id>,
    section: ExportSection,
    /// How many events the next statement reads.
    batch: i64,
    events: i64,
    /// Whether the session may have been deleted since its row was read.
    is_stale: bool,
}

/// How many sessions one statement reads for the export of the whole agent, and the most
/// bytes of their metadata and settings. Only the last of them may exceed it.
const SESSIONS_BATCH: i64 = 64;
const AHEAD_BYTES: usize = 1 << 20;

/// Prefetched rows of sessions, to start their exports.
#[derive(Default)]
pub struct SessionsAhead {
    rows: VecDeque<Row>,
}

impl SessionsAhead {
    /// Starts the export of the session with the next number after this one.
    pub fn begin_next(
        &mut self,
        db: &dyn Database,
        after_number: i64,
    ) -> Result<Option<(i64, Export)>> {
        if self.rows.is_empty() {
            let bounds = (SESSIONS_BATCH, AHEAD_BYTES);
            self.rows = heads::load_after(db, &HeadRow::columns(), after_number, bounds)?.into();
        }
        let Some(row) = self.rows.pop_front() else {
            return Ok(None);
        };
        let export = Export::begin_with(row.read()?, false)?;
        Ok(Some((export.number, export)))
    }

    /// Drops the rows, before other requests may write.
    pub fn forget(&mut self) {
        self.rows.clear();
    }
}

impl Export {
    /// Starts an export of the session as it is now.
    pub fn begin(db: &dyn Database, session_id: &Id) -> Result<Self> {
        Self::begin_as(db, session_id, true)
    }

    /// Starts an export for the file of the whole agent, which names no agent.
    pub fn begin_in_agent(db: &dyn Database, session_id: &Id) -> Result<Self> {
        Self::begin_as(db, session_id, false)
    }

    fn begin_as(db: &dyn Database, session_id: &Id, names_agent: bool) -> Result<Self> {
        let head: HeadRow = heads::find(db, &HeadRow::columns(), session_id)?
            .ok_or_else(|| Error::session_not_found(session_id.as_str()))?;
        Self::begin_with(head, names_agent)
    }

    fn begin_with(head: HeadRow, names_agent: bool) -> Result<Self> {
        let mut session = head.line()?;
        session.agent_id.take_if(|_| !names_agent);
        session.learned_seq.take_if(|_| names_agent);
        Ok(Self {
            session_id: head.id,
            number: head.session.number,
            created_at: session.created_at.0,
            last: ExportEnd {
                seq: head.newest_seq,
                cursor: head.last_cursor,
            },
            has_summaries: head.has_summaries,
            has_memory: head.has_memory,
            chosen_leaf: head.chosen_leaf.and_then(|id| Id::parse(id).ok()),
            section: ExportSection::Session(render(&session)?),
            batch: MAX_BATCH,
            events: 0,
            is_stale: false,
        })
    }

    /// Notes that other requests may write before the next page.
    pub fn pause(&mut self) {
        self.is_stale = true;
    }

    /// Continues after a position that [`Self::find_position`] returned.
    pub fn resume(&mut self, position: EventsPosition) {
        self.events = position.events;
        self.last = position.end.unwrap_or(self.last);
        self.section = ExportSection::Events {
            after_seq: position.seq,
        };
    }

    /// The position after the events that were written. `None`: the export is not in the
    /// event section.
    pub fn find_position(&self) -> Option<EventsPosition> {
        let seq = match self.section {
            ExportSection::Events { after_seq } => after_seq,
            ExportSection::Compactions => self.last.seq,
            _ => return None,
        };
        Some(EventsPosition {
            seq,
            events: self.events,
            end: Some(self.last),
        })
    }

    pub fn session_id(&self) -> &Id {
        &self.session_id
    }

    /// When the session was created, as its line states.
    pub fn created_at(&self) -> i64 {
        FileTime::of(self.created_at).0
    }

    pub fn is_over(&self) -> bool {
        matches!(self.section, ExportSection::Done)
    }

    /// The next lines, about [`PAGE_BYTES`] of them. `None`: there are no more lines.
    pub fn next_page(&mut self, db: &dyn Database) -> Result<Option<String>> {
        if matches!(self.section, ExportSection::Done) {
            return Ok(None);
        }
        if std::mem::replace(&mut self.is_stale, true) {
            self.check_session(db)?;
        }
        let mut page = String::new();
        while page.len() < PAGE_BYTES {
            match &mut self.section {
                ExportSection::Session(line) => {
                    page.push_str(line);
                    self.section = match self.last.seq {
                        0 => ExportSection::Compactions,
                        _ => ExportSection::Events { after_seq: 0 },
                    };
                }
                ExportSection::Events { after_seq } => {
                    let after_seq = *after_seq;
                    self.section = match self.add_events(db, after_seq, &mut page)? {
                        Some(after_seq) => ExportSection::Events { after_seq },
                        None => ExportSection::Compactions,
                    };
                }
                ExportSection::Compactions => {
                    if self.has_summaries {
                        self.add_compactions(db, &mut page)?;
                    }
                    self.section = match self.last.cursor {
                        0 => self.memory_section(),
                        _ => ExportSection::Changes { after_cursor: 0 },
                    };
                }
                ExportSection::Changes { after_cursor } => {
                    let after_cursor = *after_cursor;
                    self.section = match self.add_changes(db, after_cursor, &mut page)? {
                        Some(after_cursor) => ExportSection::Changes { after_cursor },
                        None => self.memory_section(),
                    };
                }
                ExportSection::Memory(memory) => {
                    if !memory.add(db, self.session_id.as_str(), &mut page)? {
                        self.section = ExportSection::End;
                    }
                }
                ExportSection::End => {
                    page.push_str(&self.end(db)?);
                    self.section = ExportSection::Done;
                }
                ExportSection::Done => break,
            }
        }
        Ok(Some(page))
    }

    fn memory_section(&self) -> ExportSection {
        if self.has_memory {
            ExportSection::Memory(MemoryExport::default())
        } else {
            ExportSection::End
        }
    }

    fn check_session(&self, db: &dyn Database) -> Result<()> {
        if heads::exists(db, &self.session_id, self.number, self.created_at)? {
            Ok(())
        } else {
            Err(Error::session_not_found(self.session_id.as_str()))
        }
    }

    /// Adds events. Returns the `seq` to continue after, or `None` after the last event.
    fn add_events(
        &mut self,
        db: &dyn Database,
        after_seq: i64,
        page: &mut String,
    ) -> Result<Option<i64>> {
        let seqs = (after_seq, self.last.seq);
        let rows = whole_rows::load(db, &self.session_id, seqs, self.batch)?;
        let before = self.events;
        let last = add_rows(rows, self.batch, page, |row, page| {
            let line = self.event(db, &row)?;
            if page.is_empty() {
                *page = line;
            } else {
                page.push_str(&line);
            }
            self.events += 1;
            Ok(row)
        })?;
        // If a few rows fill a page, the next statement reads fewer rows.
        self.batch = ((self.events - before) * 2).clamp(1, MAX_BATCH);
        last.map(|last| Ok(last.read::<TreePosition>()?.seq))
            .transpose()
    }

    fn event(&self, db: &dyn Database, row: &Row) -> Result<String> {
        let row: WholeRow<'_> = row.read()?;
        let mut event = row.event.get(db, &self.session_id)?;
        let damaged = |what: &'static str| {
            let id = event.id.clone();
            move |_: ReadError| Error::corrupt_row(&id, what)
        };
        let has_content = row.has_content || !event.content.is_empty();
        if event.action == Action::UserMessage {
            // The note of `runTurn` on a user's message is valid only in this session.
            event.note = Note {
                run_answer: None,
                ..event.note()?
            }
            .json();
        }
        let note = event.note()?;
        if !note.questions.is_empty() {
            // A tool's state and the answers to it stay here: no call continues from a file.
            event.note = note.closed().json();
        }
        let message = event.message.take().map(object_of);
        if message.is_some() {
            // The message contains the same text. Keeping a long text once saves memory.
            event.content = String::new();
        }
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bodies = [&message, &event.tool, &event.metadata, &event.note];
        let bytes =
            LINE_OVERHEAD_BYTES + event.content.len() + bodies.map(length).iter().sum::<usize>();
        let out = EventOut {
            kind: LineKind::Event,
            seq: event.seq,
            id: &event.id,
            parent_id: row.parent_id,
            action: event.action.name(),
            content: Some(event.content.as_str()).filter(|_| has_content && message.is_none()),
            tool: match &event.tool {
                Some(tool) => json::decode(tool).map_err(damaged("tool"))?,
                None => StoredTool::default(),
            },
            metadata: raw(event.metadata.as_deref()).map_err(damaged("metadata"))?,
            message: raw(message.as_deref()).map_err(damaged("message"))?,
            note: raw(event.note.as_deref()).map_err(damaged("note"))?,
            created_at: event.created_at,
            written_at: row.written_at,
        };
        render_within(&out, bytes)
    }

    /// Adds all overlays at once: a session has few.
    fn add_compactions(&self, db: &dyn Database, page: &mut String) -> Result<()> {
        for overlay in overlays::load_overlays(db, &self.session_id)? {
            if overlay.range.to_seq > self.last.seq {
                continue;
            }
            let id = |id: &str| Id::parse(id.to_owned()).map_err(Error::storage);
            page.push_str(&render(&CompactionLine {
                kind: LineKind::Compaction,
                id: id(&overlay.id)?,
                from_id: id(&overlay.from_id)?,
                to_id: id(&overlay.to_id)?,
                summary: overlay.summary,
                tokens_before: overlay.tokens_before.map(count),
                tokens_after: overlay.tokens_after.map(count),
                created_at: FileTime::of(overlay.created_at),
            })?);
        }
        Ok(())
    }

    /// Adds changes. Returns the cursor to continue after, or `None` after the last change.
    fn add_changes(
        &self,
        db: &dyn Database,
        after_cursor: i64,
        page: &mut String,
    ) -> Result<Option<i64>> {
        let cursors = (after_cursor, self.last.cursor);
        let rows = load_stored(db, &self.session_id, cursors, CHANGES_BATCH)?;
        let is_full = rows.len() as i64 == CHANGES_BATCH;
        let last_cursor = rows.last().map(|row| row.cursor).filter(|_| is_full);
        for row in rows {
            page.push_str(&render(&ChangeLine {
                kind: LineKind::Change,
                cursor: count(row.cursor),
                change: row.kind,
                id: row.id.and_then(|id| Id::parse(id).ok()),
                changed_at: FileTime::of(row.changed_at),
            })?);
        }
        Ok(last_cursor)
    }

    fn end(&mut self, db: &dyn Database) -> Result<String> {
        let chosen = match self.chosen_leaf.take() {
            // The chosen leaf may have been deleted since the export began, or be newer.
            Some(id) => find_seqs(db, &self.session_id, std::iter::once(&id))?
                .get(id.as_str())
                .is_some_and(|seq| *seq <= self.last.seq)
                .then_some(id),
            None => None,
        };
        render(&EndLine {
            kind: LineKind::End,
            events: Count(self.events),
            leaf_id: chosen,
        })
    }
}

/// The last line of an export that failed.
pub fn render_failure(error: &Error) -> String {
    let body = error.body();
    // From `{"error":…}` to `{"type":"error","error":…}`.
    format!(
        "{{\"type\":\"error\",{}\n",
        body.strip_prefix('{').unwrap_or("}")
    )
}

/// Encloses an object's fields in braces, without copying a long text.
fn object_of(mut fields: String) -> String {
    fields.reserve_exact(2);
    fields.insert(0, '{');
    fields.push('}');
    fields
}

fn raw(text: Option<&str>) -> Result<Option<&RawValue>, ReadError> {
    text.map(json::decode).transpose()
}
