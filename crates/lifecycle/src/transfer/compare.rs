//! Imports into an existing session: compares each line with the line that an export of the session
//! would contain now. A file with the same content is not a conflict; a different file is. Both
//! lines are read as an import reads them, because a file that somebody wrote by hand may leave out
//! what an export writes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::export::Export;
use super::lines::{
    ChangeLine, CompactionLine, EndLine, EventLine, LineHead, LineKind, SessionLine, render,
};
use super::memory::lines::{
    BlockLine, EntryLine, LoadedLine, PastLine, PromptLine, SkillLine, VersionLine,
};
use super::pending::{LineRules, PendingEvent};
use super::rights::ImportSender;
use crate::transfer::memory::lines::quoted_document;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, Tree, json};
use memory::item_note::ItemNote;

pub struct ImportComparison {
    export: Export,
    page: String,
    at: usize,
    sender: ImportSender,
    /// Keys of metadata that a client's messages lose.
    reserved_keys: Vec<Id>,
    /// If `false`, frozen prompts are skipped, and the sources of texts are not compared, as an
    /// import leaves them out.
    accepts_prompts: bool,
}

/// Fields that the URL gives, so that the file's values may differ, and fields that only the file
/// of a whole agent has.
const ADDRESS: [&str; 3] = ["id", "agentId", "learnedSeq"];

/// Fields that a later line of the file may raise, or that are limited for the sender.
const TIMES: [&str; 3] = ["createdAt", "updatedAt", "seqFloor"];

/// How an export begins the line of a frozen prompt.
const PROMPT_LINE: &str = "{\"type\":\"prompt\"";

impl ImportComparison {
    pub fn begin(
        db: &dyn Database,
        sender: &ImportSender,
        reserved_keys: Vec<Id>,
        line: &SessionLine,
    ) -> Result<Self> {
        let mut comparing = Self {
            export: Export::begin(db, &sender.session_id)?,
            page: String::new(),
            at: 0,
            sender: sender.clone(),
            reserved_keys,
            accepts_prompts: sender.accepts_prompts(),
        };
        let stored = comparing.next_line(db)?.unwrap_or_default();
        let stored: SessionLine = json::parse(stored.as_bytes())?;
        let is_same = head_of(line)? == head_of(&stored)?
            && comparing.is_same_time(stored.created_at.0, line.created_at.0)
            // The events and changes of the file may be newer than its first line.
            && stored.updated_at.0 >= comparing.limited(line.updated_at.0, stored.updated_at.0)
            && stored.seq_floor.0 >= line.seq_floor.0;
        if is_same {
            Ok(comparing)
        } else {
            Err(comparing.differs())
        }
    }

    /// A time of the file, as far as this sender may choose it: no time after the import.
    fn limited(&self, given_ms: i64, stored_ms: i64) -> i64 {
        self.sender.time(given_ms, stored_ms)
    }

    fn is_same_time(&self, stored_ms: i64, given_ms: i64) -> bool {
        stored_ms == self.limited(given_ms, stored_ms)
    }

    /// Compares a line. After the last line, returns the number of events.
    pub fn compare_line(&mut self, db: &dyn Database, line: &[u8]) -> Result<Option<i64>> {
        // Parsed before comparing, so that an invalid line gets its own error.
        let LineHead { kind } = json::parse(line)?;
        if kind == LineKind::Prompt && !self.accepts_prompts {
            return Ok(None);
        }
        let accepts_sources = self.accepts_prompts;
        let stored = self.next_line(db)?.unwrap_or_default().to_owned();
        let is_same = match kind {
            LineKind::Event => self.is_same_event(stored.as_bytes(), line)?,
            _ => is_same_line(stored.as_bytes(), line, accepts_sources),
        };
        if !is_same {
            return Err(self.differs());
        }
        match kind {
            LineKind::End => json::parse::<EndLine>(line).map(|end| Some(end.events.0)),
            _ => Ok(None),
        }
    }

    fn is_same_event(&self, stored: &[u8], line: &[u8]) -> Result<bool> {
        if stored == line.trim_ascii() {
            return Ok(true);
        }
        let Ok(stored) = json::parse::<EventLine>(stored) else {
            return Ok(false);
        };
        let mut line: EventLine = json::parse(line)?;
        line.written_at.0 = self.limited(line.written_at.0, stored.written_at.0);
        let time = |given_ms| given_ms;
        let authority = self.sender.caller.authority();
        let reading = LineRules {
            authority: Some(&authority).filter(|_| !self.sender.keeps_origins()),
            source: self.sender.source(),
            reserved_keys: &self.reserved_keys,
            time: &time,
            accepts_provider_data: self.accepts_prompts,
        };
        let line = PendingEvent::from_line(line, 0, &reading)?;
        let stored = PendingEvent::from_line(stored, 0, &reading);
        Ok(stored.is_ok_and(|stored| stored.is_same(&line)))
    }

    /// The next line of the session's export that an import would not skip.
    fn next_line(&mut self, db: &dyn Database) -> Result<Option<&str>> {
        self.fill(db)?;
        if !self.accepts_prompts && self.rest().starts_with(PROMPT_LINE) {
            self.at += self.rest().split_inclusive('\n').next().map_or(0, str::len);
            self.fill(db)?;
        }
        if self.page.is_empty() {
            return Ok(None);
        }
        let start = self.at;
        let line = self.rest().split('\n').next().unwrap_or_default().len();
        self.at += line + 1;
        Ok(self.page.get(start..start + line))
    }

    fn rest(&self) -> &str {
        self.page.get(self.at..).unwrap_or_default()
    }

    /// Loads the next page if this page was read.
    fn fill(&mut self, db: &dyn Database) -> Result<()> {
        if self.at >= self.page.len() {
            self.at = 0;
            self.page = self.export.next_page(db)?.unwrap_or_default();
        }
        Ok(())
    }

    fn differs(&self) -> Error {
        already_exists(&self.sender.session_id)
    }
}

/// The error is the same whether or not the file was compared.
pub fn already_exists(session_id: &Id) -> Error {
    Error::new(
        Code::AlreadyExists,
        "A session with this id exists. Either this file contains a different session, or you may \
         not read the existing one. Import it with another id, or delete the existing session.",
    )
    .with("id", session_id.as_str())
}

/// The fields of a `session` line that must be the same.
fn head_of(line: &SessionLine) -> Result<Value> {
    let Tree(mut head) = json::parse(render(line)?.as_bytes())?;
    if let Some(head) = head.as_object_mut() {
        for field in ADDRESS.iter().chain(&TIMES) {
            head.remove(*field);
        }
        // These have no effect.
        head.retain(|_, value| !matches!(value, Value::Bool(false)) && *value != json!({}));
        if let Some(usage) = head.get_mut("usage").and_then(Value::as_object_mut) {
            usage.retain(|_, value| value.as_i64() != Some(0));
        }
    }
    Ok(head)
}

/// A line's value, as an import reads it.
fn plain_value(line: &[u8]) -> Option<Value> {
    fn read<T: DeserializeOwned + Serialize>(line: &[u8]) -> Option<String> {
        render(&json::parse::<T>(line).ok()?).ok()
    }
    let kind = json::parse::<LineHead>(line).ok().map(|head| head.kind);
    let plain = match kind {
        Some(LineKind::Compaction) => read::<CompactionLine>(line),
        Some(LineKind::Change) => read::<ChangeLine>(line),
        Some(LineKind::Block) => read::<BlockLine>(line),
        Some(LineKind::Version) => read::<VersionLine>(line),
        Some(LineKind::Entry) => read::<EntryLine>(line),
        Some(LineKind::Skill) => read::<SkillLine>(line),
        Some(LineKind::Past) => read::<PastLine>(line),
        Some(LineKind::Loaded) => read::<LoadedLine>(line),
        Some(LineKind::Prompt) => read::<PromptLine>(line),
        Some(LineKind::End) => read::<EndLine>(line),
        Some(LineKind::Session | LineKind::Event | LineKind::Error) | None => None,
    };
    let Tree(value) = match plain {
        Some(plain) => json::decode(&plain).ok()?,
        None => json::decode_bytes(line).ok()?,
    };
    Some(value)
}

/// Compares bytes first, and then what an import reads: another program may have written the file
/// with other formatting, or without the fields that have no effect. An import that does not trust
/// its file (`accepts_sources` is `false`) records that the texts of memory were imported, so their
/// sources are not compared then.
pub fn is_same_line(stored: &[u8], line: &[u8], accepts_sources: bool) -> bool {
    let line = line.trim_ascii();
    let value = |line: &[u8]| -> Option<Value> {
        let value = plain_value(line)?;
        if accepts_sources {
            Some(value)
        } else {
            Some(without_source(value))
        }
    };
    stored == line || value(line).is_some_and(|line| value(stored) == Some(line))
}

/// Removes the source of the text from a line of memory. A line without a note equals one whose
/// note is empty.
fn without_source(mut line: Value) -> Value {
    let kind = line.get("type").and_then(Value::as_str);
    let field = match kind {
        Some("entry" | "skill" | "past") => "note",
        Some("version") => "source",
        Some("block") => "origin",
        Some("loaded") => "content",
        Some(_) | None => return line,
    };
    if field == "content" {
        let loaded_at = line.get("loadedAt").and_then(Value::as_i64).unwrap_or(0);
        if let Some(Value::String(content)) = line.get_mut("content") {
            *content = quoted_document(content, loaded_at);
        }
        return line;
    }
    if field != "note" {
        if let Some(fields) = line.as_object_mut() {
            fields.remove(field);
        }
        return line;
    }
    let note = line.get("note").cloned().unwrap_or_default();
    let plain = json::from_value::<Option<ItemNote>>(&note)
        .ok()
        .and_then(|note| {
            let note = ItemNote {
                source: None,
                ..note.unwrap_or_default()
            };
            json::decode_tree(&json::encode(&note).ok()?).ok()
        });
    if let (Some(plain), Some(fields)) = (plain, line.as_object_mut()) {
        fields.insert("note".to_owned(), plain);
    }
    line
}
