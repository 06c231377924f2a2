//! Imports a session: splits the bytes into lines as they arrive. The session appears only when the
//! last line was read. Until then its rows are pending (`staging.rs`), and are written in
//! transactions of bounded size.
//!
//! Repeating an import changes nothing: its lines are compared with those that an export would
//! write now.

use crate::json_schema::JsonSchema;
use crate::transfer::target::{ImportTarget, OmittedPart, at_line};
use serde::Serialize;

use super::compare::{ImportComparison, already_exists};
use super::line_splitter::LineSplitter;
use super::lines::{
    ChangeLine, CompactionLine, EndLine, EventLine, LineHead, LineKind, SessionLine,
};
use super::rights::{ImportSender, permit_export};
use super::writing::ImportWriter;
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use conversation::log::sessions::session_exists;
use store::config::load_config;

/// The outcome of an import.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    pub session_id: Id,
    /// The number of the session's events.
    pub events: i64,
    /// The number of events that this import wrote.
    pub imported: i64,
    /// The number of events that existed already.
    pub skipped: i64,
    /// The parts of the file that this import left out. A frozen prompt is imported only with the
    /// secret and `?allowSources=true`. Otherwise the session's next turn freezes a new prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub left_out: Vec<OmittedPart>,
}

enum ImportState {
    Empty,
    Writing(Box<ImportWriter>),
    ImportComparison(Box<ImportComparison>),
    Ended(ImportEnding),
}

enum ImportEnding {
    Written(Box<ImportWriter>, EndLine),
    Same(i64),
}

pub struct Import {
    target: ImportTarget,
    state: ImportState,
    lines: LineSplitter,
}

impl Import {
    pub fn new(target: ImportTarget) -> Self {
        Self {
            target,
            state: ImportState::Empty,
            lines: LineSplitter::new(1),
        }
    }

    /// An import whose first line has this number in the file.
    pub fn begin_at(target: ImportTarget, line_number: u64) -> Self {
        Self {
            lines: LineSplitter::new(line_number),
            ..Self::new(target)
        }
    }

    /// Processes the next line, without its newline. After an error, all rows of the import are
    /// deleted.
    pub fn push_line(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        line: Vec<u8>,
        line_number: u64,
    ) -> Result<()> {
        self.lines.number_next(line_number);
        let outcome = self.import_line(db, host, line);
        self.undone_if_failed(db, outcome)
    }

    /// Processes the next bytes. After an error, all rows of the import are deleted.
    pub fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()> {
        let outcome = self.import_bytes(db, host, bytes);
        self.undone_if_failed(db, outcome)
    }

    /// The memory that the import uses between two chunks of the file: the unfinished line.
    pub fn buffered_bytes(&self) -> usize {
        self.lines.buffered_bytes()
    }

    /// Whether the last line was processed.
    pub fn is_at_end(&self) -> bool {
        matches!(self.state, ImportState::Ended(_))
    }

    /// Whether the session existed already, so that nothing is written.
    pub fn existed(&self) -> bool {
        matches!(
            self.state,
            ImportState::ImportComparison(_) | ImportState::Ended(ImportEnding::Same(_))
        )
    }

    /// Processes the end of the file.
    pub fn finish(mut self, db: &dyn Database, host: &dyn Host) -> Result<Imported> {
        let outcome = self.finish_file(db, host);
        self.undone_if_failed(db, outcome)
    }

    /// Deletes the written rows because the sender disconnected.
    pub fn abandon(&mut self, db: &dyn Database) -> Result<()> {
        match std::mem::replace(&mut self.state, ImportState::Empty) {
            ImportState::Writing(writing)
            | ImportState::Ended(ImportEnding::Written(writing, _)) => writing.abandon(db),
            ImportState::Empty
            | ImportState::ImportComparison(_)
            | ImportState::Ended(ImportEnding::Same(_)) => Ok(()),
        }
    }

    fn undone_if_failed<T>(&mut self, db: &dyn Database, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            // If this fails too, a later import deletes the remaining rows.
            let _ = self.abandon(db);
        }
        outcome
    }

    fn import_bytes(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()> {
        self.lines.receive(bytes.len())?;
        let mut rest = bytes;
        while let Some(line) = self.lines.cut(&mut rest)? {
            self.import_line(db, host, line)?;
        }
        Ok(())
    }

    fn import_line(&mut self, db: &dyn Database, host: &dyn Host, line: Vec<u8>) -> Result<()> {
        let line_number = self.lines.pass();
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let state = std::mem::replace(&mut self.state, ImportState::Empty);
        let next = match state {
            ImportState::Empty => self
                .begin(db, host, &line)
                .map_err(|e| at_line(line_number, e)),
            ImportState::ImportComparison(mut comparing) => comparing
                .compare_line(db, &line)
                .map(|events| match events {
                    Some(events) => ImportState::Ended(ImportEnding::Same(events)),
                    None => ImportState::ImportComparison(comparing),
                })
                .map_err(|error| at_line(line_number, error)),
            ImportState::Writing(mut writing) => {
                match import_line_of(&mut writing, db, host, line, line_number) {
                    Ok(Some(end)) => Ok(ImportState::Ended(ImportEnding::Written(writing, end))),
                    Ok(None) => Ok(ImportState::Writing(writing)),
                    Err(error) => {
                        // Restored, so that the rows it wrote can be deleted.
                        self.state = ImportState::Writing(writing);
                        Err(error)
                    }
                }
            }
            ImportState::Ended(ending) => {
                self.state = ImportState::Ended(ending);
                let error = Error::invalid("type", "Nothing may follow the `end` line.");
                Err(at_line(line_number, error))
            }
        };
        self.state = next?;
        Ok(())
    }

    fn begin(&self, db: &dyn Database, host: &dyn Host, line: &[u8]) -> Result<ImportState> {
        let kind = kind_of(line)?;
        if kind != LineKind::Session {
            return Err(Error::invalid(
                "type",
                "The first line must be the `session` line, as an export writes it.",
            ));
        }
        let session: SessionLine = json::parse(line)?;
        session.check()?;
        if session_exists(db, self.target.session_id())? {
            check_repeat(db, &self.target.sender)?;
            let reserved = load_config(db, &self.target.deployed)?
                .reserved_metadata_keys
                .0;
            let comparing = ImportComparison::begin(db, &self.target.sender, reserved, &session)?;
            return Ok(ImportState::ImportComparison(Box::new(comparing)));
        }
        let writing = ImportWriter::begin(db, host, &self.target, session)?;
        Ok(ImportState::Writing(Box::new(writing)))
    }

    fn finish_file(&mut self, db: &dyn Database, host: &dyn Host) -> Result<Imported> {
        let rest = self.lines.take_rest();
        self.import_line(db, host, rest)?;
        let cut_off = Error::invalid(
            "type",
            "The file ends before its `end` line: it is truncated. Export the session again, or \
             send the complete file.",
        );
        let (events, imported, left_out) = match &mut self.state {
            ImportState::Ended(ImportEnding::Same(events)) => (*events, 0, Vec::new()),
            ImportState::Ended(ImportEnding::Written(writing, end)) => {
                let events = writing.finish(db, host, end)?;
                (events, events, writing.left_out())
            }
            ImportState::Empty | ImportState::Writing(_) | ImportState::ImportComparison(_) => {
                return Err(at_line(self.lines.last_number(), cut_off));
            }
        };
        self.state = ImportState::Empty;
        Ok(Imported {
            session_id: self.target.session_id().clone(),
            events,
            imported,
            skipped: events - imported,
            left_out,
        })
    }
}

/// Processes a line. Returns the line if its type is `end`.
fn import_line_of(
    writing: &mut ImportWriter,
    db: &dyn Database,
    host: &dyn Host,
    line: Vec<u8>,
    line_number: u64,
) -> Result<Option<EndLine>> {
    let on_line = |error| at_line(line_number, error);
    let kind = kind_of(&line).map_err(on_line)?;
    writing.check_order(kind).map_err(on_line)?;
    match kind {
        LineKind::Event => {
            let event: EventLine = json::parse(&line).map_err(on_line)?;
            drop(line);
            writing.add_event(db, host, event, line_number)?;
        }
        LineKind::Compaction => {
            let compaction: CompactionLine = json::parse(&line).map_err(on_line)?;
            writing
                .add_compaction(db, host, &compaction)
                .map_err(on_line)?;
        }
        LineKind::Change => {
            let change: ChangeLine = json::parse(&line).map_err(on_line)?;
            writing.add_change(db, host, change, line_number)?;
        }
        LineKind::Block
        | LineKind::Version
        | LineKind::Entry
        | LineKind::Past
        | LineKind::Skill
        | LineKind::Loaded
        | LineKind::Prompt => writing.add_memory(db, host, kind, &line, line_number)?,
        LineKind::End => {
            let end: EndLine = json::parse(&line).map_err(on_line)?;
            writing.check_end(db, host, &end, line_number)?;
            return Ok(Some(end));
        }
        LineKind::Session => {
            let error = Error::invalid(
                "type",
                "This file can only contain one session, but it has more than one `session` line.",
            );
            return Err(on_line(error));
        }
        LineKind::Error => {
            let error = Error::invalid(
                "type",
                "The export that wrote this file failed here. Export the session again.",
            );
            return Err(on_line(error));
        }
    }
    Ok(None)
}

/// Checks that an import into an existing session may be compared with it. Only a sender who may
/// read the session may continue, because the comparison reveals the session's contents.
pub fn check_repeat(db: &dyn Database, sender: &ImportSender) -> Result<()> {
    permit_export(db, &sender.caller, &sender.session_id)
        .map_err(|_| already_exists(&sender.session_id))
}

fn kind_of(line: &[u8]) -> Result<LineKind> {
    json::parse::<LineHead>(line).map(|line| line.kind)
}
