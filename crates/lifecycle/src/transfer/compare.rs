//! Imports into an existing session: compares each line with the line that an export of
//! the session would contain now. An identical file is not a conflict; a different file
//! is.

use serde_json::Value;

use super::export::Export;
use super::lines::{EndLine, LineHead, LineKind};
use super::rights::ImportSender;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, Tree};
use memory::item_note::ItemNote;

pub struct Comparing {
    export: Export,
    page: String,
    at: usize,
    session_id: Id,
    /// If `false`, frozen prompts are skipped, and where a text comes from is not compared,
    /// as an import leaves them out.
    takes_prompts: bool,
}

/// Fields that the URL gives, so that the file's values may differ, and what only the file of
/// a whole agent says.
const ADDRESS: [&str; 3] = ["id", "agentId", "learnedSeq"];

/// How an export begins the line of a frozen prompt.
const PROMPT_LINE: &str = "{\"type\":\"prompt\"";

impl Comparing {
    pub fn begin(db: &dyn Database, sender: &ImportSender, line: &[u8]) -> Result<Self> {
        let session_id = &sender.session_id;
        let mut comparing = Self {
            export: Export::begin(db, session_id)?,
            page: String::new(),
            at: 0,
            session_id: session_id.clone(),
            takes_prompts: sender.takes_prompts(),
        };
        let stored = comparing.next_line(db)?.unwrap_or_default().to_owned();
        let head = |line: &[u8]| -> Option<Value> {
            let Tree(mut head) = json::decode_bytes(line).ok()?;
            for field in ADDRESS {
                head.as_object_mut()?.remove(field);
            }
            Some(head)
        };
        match head(line) == head(stored.as_bytes()) {
            true => Ok(comparing),
            false => Err(comparing.differs()),
        }
    }

    /// Compares a line. After the last line, returns the number of events.
    pub fn take(&mut self, db: &dyn Database, line: &[u8]) -> Result<Option<i64>> {
        // Parsed before comparing, so that an invalid line gets its own error.
        let LineHead { kind } = json::parse(line)?;
        if kind == LineKind::Prompt && !self.takes_prompts {
            return Ok(None);
        }
        let takes_sources = self.takes_prompts;
        let is_same = self
            .next_line(db)?
            .is_some_and(|stored| is_same_line(stored.as_bytes(), line, takes_sources));
        if !is_same {
            return Err(self.differs());
        }
        match kind {
            LineKind::End => json::parse::<EndLine>(line).map(|end| Some(end.events.0)),
            _ => Ok(None),
        }
    }

    /// The next line of the session's export that an import would not leave out.
    fn next_line(&mut self, db: &dyn Database) -> Result<Option<&str>> {
        self.fill(db)?;
        if !self.takes_prompts && self.rest().starts_with(PROMPT_LINE) {
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
        already_exists(&self.session_id)
    }
}

/// The error is the same whether or not the file was compared.
pub fn already_exists(session_id: &Id) -> Error {
    Error::new(
        Code::AlreadyExists,
        "A session with this id exists. Either this file holds another session, or this caller may not read the existing one. Import under another id, or delete the existing session.",
    )
    .with("id", session_id.as_str())
}

/// Compares bytes first, and then JSON values: another program may have written the file
/// with other formatting. An import that does not trust its file (`takes_sources` is `false`)
/// writes down that the texts of memory were imported, so that is not compared then.
pub fn is_same_line(stored: &[u8], line: &[u8], takes_sources: bool) -> bool {
    let line = line.trim_ascii();
    let value = |line: &[u8]| -> Option<Value> {
        let Tree(value) = json::decode_bytes(line).ok()?;
        match takes_sources {
            true => Some(value),
            false => Some(without_source(value)),
        }
    };
    stored == line || value(line).is_some_and(|line| value(stored) == Some(line))
}

/// Takes out of the line of an entry, a document or an earlier version who its text comes
/// from. A line without a note says the same as one whose note says nothing.
fn without_source(mut line: Value) -> Value {
    let kind = line.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("entry" | "skill" | "past")) {
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
