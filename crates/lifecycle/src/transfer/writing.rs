//! Writes the rows of an import. They are pending while their lines arrive, one transaction
//! per batch. The last transaction turns them into a session.
//!
//! The import doesn't trust derived values in the file. It recomputes whether an id encodes
//! its row number, and whether an event follows the previous one.

use std::collections::HashMap;

use super::lines::{
    ChangeLine, CompactionLine, EndLine, EventLine, FileTime, LineKind, SessionLine,
};
use super::memory::import::MemoryImport;
use super::pending::{LineRules, PendingEvent};
use super::rights::ImportSender;
use access::AccessRule;

use crate::pending_import;
use crate::transfer::rules::{
    ADD_COMPACTION, ADD_USAGE, CLEAR_MESSAGES, CONFIGURE_COMPACTION, DELETE_EVENTS,
    DELETE_MESSAGES, SET_LEAF, UPDATE_MESSAGE,
};
use crate::transfer::target::{ImportTarget, OmittedPart, at_line};
use base::database::{Database, MAX_LIST_BYTES, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::{JsonObject, json};
use base::numbers::CURSORS_A_SEQ;
use context::compaction::journal::render_settings;
use conversation::index::build::add_session;
use conversation::index::find_index;
use conversation::log::find::find_seqs;
use conversation::log::media::{self, StrippedText};
use conversation::log::sessions::{MAX_NAME_CHARS, NewSessionRow, session_exists};
use conversation::log::write::write_rows;
use conversation::messages::tree::overlay_writes;
use conversation::session::changes;
use conversation::session::learn_due::write_learned;
use memory::definitions::{has_own_rules, record_own_rules};
use store::config::load_config;

/// The most events of a transaction, and their approximate bytes.
const MAX_BATCH: usize = 500;
const MAX_BATCH_BYTES: usize = MAX_LIST_BYTES;

pub struct ImportWriter {
    session_id: Id,
    sender: ImportSender,
    /// Metadata keys of messages that only a server may set.
    reserved_keys: Vec<Id>,
    agent: String,
    /// Marks the pending rows as owned by this import.
    token: String,
    session: SessionLine,
    events: Vec<PendingEvent>,
    changes: Vec<ChangeLine>,
    pending_bytes: usize,
    /// The `seq` of the newest written event. `last_seq` and `last_cursor` are those of the
    /// newest line.
    written_seq: i64,
    last_seq: i64,
    last_cursor: i64,
    /// The type of the newest line.
    last_kind: LineKind,
    memory: MemoryImport,
    count: i64,
}

impl ImportWriter {
    pub fn begin(
        db: &dyn Database,
        host: &dyn Host,
        target: &ImportTarget,
        session: SessionLine,
    ) -> Result<Self> {
        if session
            .name
            .as_ref()
            .is_some_and(|name| name.chars().count() > MAX_NAME_CHARS)
        {
            return Err(Error::invalid(
                "name",
                format!("`name` must have at most {MAX_NAME_CHARS} characters."),
            ));
        }
        let sender = &target.sender;
        if sender.caller.only_session().is_some() && session.parent_session_id.is_some() {
            return Err(Error::new(
                Code::Forbidden,
                "This token is for one session and can't name another as its parent.",
            )
            .with_field("parentSessionId"));
        }
        for (field, is_set) in [
            ("retention", session.retention.is_some()),
            ("pinned", session.pinned.is_some()),
        ] {
            if is_set {
                sender.check_retention(field)?;
            }
        }
        if session.has_usage() {
            sender.check(&[ADD_USAGE])?;
        }
        if let Some(part) = session.compaction {
            sender.check(&[CONFIGURE_COMPACTION])?;
            part.settings()?;
        }
        let session_id = target.session_id().clone();
        let token = Id::mint_session(host).as_str().to_owned();
        atomically(db, || pending_import::begin(db, host, &session_id, &token))?;
        Ok(Self {
            session_id,
            sender: sender.clone(),
            reserved_keys: load_config(db, &target.deployed)?.reserved_metadata_keys.0,
            agent: target.agent.clone(),
            token,
            session,
            events: Vec::new(),
            changes: Vec::new(),
            pending_bytes: 0,
            written_seq: 0,
            last_seq: 0,
            last_cursor: 0,
            last_kind: LineKind::Session,
            memory: MemoryImport::new(target.clone()),
            count: 0,
        })
    }

    /// Checks a line's type against the order of the file.
    pub fn check_order(&mut self, kind: LineKind) -> Result<()> {
        if kind < self.last_kind && kind != LineKind::Session {
            let (kind, last) = (kind.name(), self.last_kind.name());
            return Err(Error::invalid(
                "type",
                format!("All `{kind}` lines must come before the first `{last}` line."),
            ));
        }
        self.last_kind = self.last_kind.max(kind);
        Ok(())
    }

    pub fn add_event(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        line: EventLine,
        line_number: u64,
    ) -> Result<()> {
        let on_line = |error| at_line(line_number, error);
        line.check().map_err(on_line)?;
        self.sender.check_action(line.action).map_err(on_line)?;
        if line.seq.0 <= self.last_seq {
            return Err(on_line(Error::invalid(
                "seq",
                "`seq` must increase from event to event.",
            )));
        }
        self.last_seq = line.seq.0;
        let now_ms = host.now_ms();
        let time = |given_ms| self.sender.time(given_ms, now_ms);
        let authority = self.sender.caller.authority();
        let reading = LineRules {
            source: self.sender.source(),
            reserved_keys: &self.reserved_keys,
            time: &time,
            accepts_provider_data: self.sender.accepts_prompts(),
            authority: Some(&authority).filter(|_| !self.sender.keeps_origins()),
        };
        let pending = PendingEvent::from_line(line, line_number, &reading).map_err(on_line)?;
        self.count += 1;
        self.pending_bytes += pending.bytes();
        self.events.push(pending);
        self.flush_if_full(db, host)
    }

    pub fn add_compaction(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        line: &CompactionLine,
    ) -> Result<()> {
        self.sender.check(&[ADD_COMPACTION])?;
        self.flush(db, host)?;
        atomically(db, || {
            pending_import::renew(db, host, &self.session_id, &self.token)?;
            overlay_writes::restore(
                db,
                &self.session_id,
                &line.id,
                &line.from_id,
                &line.to_id,
                &line.summary,
                [
                    line.tokens_before.map(|tokens| tokens.0),
                    line.tokens_after.map(|tokens| tokens.0),
                    Some(line.created_at.0),
                ],
            )
        })
    }

    pub fn add_change(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        line: ChangeLine,
        line_number: u64,
    ) -> Result<()> {
        let on_line = |error| at_line(line_number, error);
        if line.cursor.0 <= self.last_cursor {
            return Err(on_line(Error::invalid(
                "cursor",
                "`cursor` must increase from change to change.",
            )));
        }
        let last_seq = self.last_seq.max(self.session.seq_floor.0);
        // The last cursors before those of the next append must stay unused.
        if line.cursor.0 >= (last_seq + 1) * CURSORS_A_SEQ - changes::CURSORS_BEFORE_APPEND {
            return Err(on_line(Error::invalid(
                "cursor",
                "`cursor` is greater than the newest event's.",
            )));
        }
        if !changes::TYPES.contains(&line.change.as_str()) {
            let known = changes::TYPES.join("`, `");
            return Err(on_line(Error::invalid(
                "change",
                format!("`change` must be one of `{known}`."),
            )));
        }
        self.sender
            .check_any(writers_of(&line.change))
            .map_err(on_line)?;
        let changed_at = self.sender.time(line.changed_at.0, host.now_ms());
        let line = ChangeLine {
            changed_at: FileTime::of(changed_at),
            ..line
        };
        self.last_cursor = line.cursor.0;
        // The length of the numbers and of the escaped id (at most 200 characters).
        self.pending_bytes += 100 + line.id.as_ref().map_or(0, |id| id.as_str().len() * 2);
        self.changes.push(line);
        self.flush_if_full(db, host)
    }

    pub fn add_memory(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        kind: LineKind,
        line: &[u8],
        line_number: u64,
    ) -> Result<()> {
        self.memory
            .import(kind, line, line_number)
            .map_err(|error| at_line(line_number, error))?;
        let (lines, bytes) = self.memory.pending();
        if lines >= MAX_BATCH || bytes >= MAX_BATCH_BYTES {
            self.flush_memory(db, host)
        } else {
            Ok(())
        }
    }

    /// Writes the remaining rows, and checks the `end` line against the lines before it.
    pub fn check_end(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        end: &EndLine,
        line_number: u64,
    ) -> Result<()> {
        let on_line = |error| at_line(line_number, error);
        if end.events.0 != self.count {
            let message = format!(
                "`events` is {}, but the file has {}: lines were lost.",
                end.events.0, self.count
            );
            return Err(on_line(Error::invalid("events", message)));
        }
        if end.leaf_id.is_some() {
            self.sender.check(&[SET_LEAF]).map_err(on_line)?;
        }
        self.flush(db, host)?;
        self.flush_memory(db, host)?;
        if let Some(leaf_id) = &end.leaf_id {
            let found = find_seqs(db, &self.session_id, std::iter::once(leaf_id))?;
            if found.is_empty() {
                return Err(on_line(unknown("leafId")));
            }
        }
        Ok(())
    }

    fn flush_if_full(&mut self, db: &dyn Database, host: &dyn Host) -> Result<()> {
        let is_full = self.pending_bytes >= MAX_BATCH_BYTES
            || self.events.len() >= MAX_BATCH
            || self.changes.len() >= MAX_BATCH;
        if is_full {
            self.flush(db, host)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, db: &dyn Database, host: &dyn Host) -> Result<()> {
        if self.events.is_empty() && self.changes.is_empty() {
            return Ok(());
        }
        atomically(db, || {
            pending_import::renew(db, host, &self.session_id, &self.token)?;
            self.write_events(db)?;
            self.write_changes(db)
        })?;
        self.written_seq = self.last_seq;
        self.events.clear();
        self.changes.clear();
        self.pending_bytes = 0;
        Ok(())
    }

    fn flush_memory(&mut self, db: &dyn Database, host: &dyn Host) -> Result<()> {
        if self.memory.pending().0 == 0 {
            return Ok(());
        }
        atomically(db, || {
            pending_import::renew(db, host, &self.session_id, &self.token)?;
            self.memory.write(db)
        })?;
        self.memory.written();
        Ok(())
    }

    fn write_events(&self, db: &dyn Database) -> Result<()> {
        let ids = self.events.iter().map(|event| &event.id);
        let parents = self
            .events
            .iter()
            .filter_map(|event| event.parent_id.as_ref());
        let mut known: HashMap<String, i64> = if self.events.is_empty() {
            HashMap::new()
        } else {
            find_seqs(db, &self.session_id, ids.chain(parents))?
        };
        let mut newest_seq = self.written_seq;
        let cuts: Vec<Option<StrippedText<'_>>> = self
            .events
            .iter()
            .map(|pending| Some(media::cut(&pending.event.message.as_ref()?.fields)))
            .collect();
        let mut rows = Vec::with_capacity(self.events.len());
        for (pending, cut) in self.events.iter().zip(&cuts) {
            let on_line = |error| at_line(pending.line_number, error);
            let id = pending.id.as_str();
            if known.contains_key(id) {
                return Err(on_line(Error::invalid(
                    "id",
                    "An earlier line already has an event with this `id`.",
                )));
            }
            let parent_seq = match &pending.parent_id {
                None => 0,
                Some(parent) => *known
                    .get(parent.as_str())
                    .ok_or_else(|| on_line(unknown("parentId")))?,
            };
            rows.push(
                pending
                    .draft(cut.as_ref(), parent_seq, newest_seq)
                    .fit("event")
                    .map_err(on_line)?,
            );
            known.insert(id.to_owned(), pending.seq);
            newest_seq = pending.seq;
        }
        let search_index = match rows.as_slice() {
            [] => None,
            _ => find_index(db, self.session_id.as_str())?,
        };
        write_rows(db, &self.session_id, (rows, &[]), search_index.as_ref())?;
        Ok(())
    }

    fn write_changes(&self, db: &dyn Database) -> Result<()> {
        let rows = self.changes.iter().map(|line| {
            let id = line.id.as_ref().map(Id::as_str);
            json!([line.cursor, line.change, id, line.changed_at])
        });
        changes::restore(db, &self.session_id, rows.collect())
    }

    /// Turns the pending rows into a session, in one transaction. Returns the number of its
    /// events.
    pub fn finish(&mut self, db: &dyn Database, host: &dyn Host, end: &EndLine) -> Result<i64> {
        let session = &self.session;
        let compaction = session
            .compaction
            .map(|part| render_settings(part.settings()?))
            .transpose()?;
        atomically(db, || {
            pending_import::renew(db, host, &self.session_id, &self.token)?;
            let leaf = match &end.leaf_id {
                Some(id) => find_seqs(db, &self.session_id, std::iter::once(id))?
                    .get(id.as_str())
                    .copied(),
                None => None,
            };
            if session_exists(db, &self.session_id)? {
                return Err(Error::storage("a session was created over an import"));
            }
            let time = |given_ms| self.sender.time(given_ms, host.now_ms());
            let row = NewSessionRow {
                id: self.session_id.as_str(),
                agent: self.agent.as_str(),
                name: session.name.as_deref(),
                parent_session_id: session.parent_session_id.as_ref().map(Id::as_str),
                metadata: session.metadata.as_ref().map(JsonObject::as_str),
                tags: session.tags.to_column()?,
                created_at: time(session.created_at.0),
                updated_at: time(session.updated_at.0),
                seq_floor: session.seq_floor.0,
                leaf_seq: leaf,
                leaf_chosen_at: leaf.map(|_| self.last_seq),
                input_tokens: session.usage.input_tokens.0,
                output_tokens: session.usage.output_tokens.0,
                cost: session.usage.cost,
                cached_input_tokens: session.usage.cached_input_tokens.map_or(0, |count| count.0),
                compaction,
                copied_seq: self.last_seq,
            };
            row.insert(db, host)?;
            let retention = session.retention();
            retention.write(db, &self.session_id, has_own_rules)?;
            if let Some(seq) = session.learned_seq {
                write_learned(db, &self.session_id, seq.0)?;
            }
            record_own_rules(db, &self.session_id)?;
            pending_import::end(db, &self.session_id)?;
            add_session(db, self.session_id.as_str())
        })?;
        Ok(self.count)
    }

    /// The parts of the file that the import omitted.
    pub fn left_out(&self) -> Vec<OmittedPart> {
        self.memory.left_out()
    }

    pub fn abandon(&self, db: &dyn Database) -> Result<()> {
        atomically(db, || {
            pending_import::abandon(db, &self.session_id, &self.token)
        })
    }
}

/// The operations that write feed entries of this type.
fn writers_of(change: &str) -> &'static [AccessRule] {
    match change {
        "update" => &[UPDATE_MESSAGE],
        "delete" => &[DELETE_EVENTS, DELETE_MESSAGES],
        "clear" => &[CLEAR_MESSAGES],
        _ => &[ADD_COMPACTION],
    }
}

fn unknown(field: &str) -> Error {
    Error::invalid(
        field,
        format!("`{field}` is not an event of an earlier line."),
    )
}
