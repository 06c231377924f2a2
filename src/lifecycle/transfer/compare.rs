//! An import into a session that is there: line by line against what an export
//! of it would say now. The same is no conflict, anything else is.

use serde_json::Value;

use super::export::Export;
use super::lines::{EndLine, LineHead, LineKind};
use super::rights::ImportSender;
use crate::base::database::Database;
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::base::json;

pub struct Comparing {
    export: Export,
    page: String,
    at: usize,
    session_id: Id,
    /// Else an import leaves a frozen prompt out, and so does this.
    takes_prompts: bool,
}

/// What the address says, and the file need not.
const ADDRESS: [&str; 2] = ["id", "agentId"];

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
            let mut head: Value = serde_json::from_slice(line).ok()?;
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

    /// Gives the number of events, once the last line was found the same.
    pub fn take(&mut self, db: &dyn Database, line: &[u8]) -> Result<Option<i64>> {
        // Whatever is there: a broken line is told as one.
        let LineHead { kind } = json::parse(line)?;
        if kind == LineKind::Prompt && !self.takes_prompts {
            return Ok(None);
        }
        let is_same = self
            .next_line(db)?
            .is_some_and(|stored| is_same(stored.as_bytes(), line));
        if !is_same {
            return Err(self.differs());
        }
        match kind {
            LineKind::End => json::parse::<EndLine>(line).map(|end| Some(end.events.0)),
            _ => Ok(None),
        }
    }

    /// The next line of what an export would say that an import would take.
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

    /// Has the next page made where this one is read.
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

/// The same, whether the file was compared or not.
pub fn already_exists(session_id: &Id) -> Error {
    Error::new(
        Code::AlreadyExists,
        "A session with this id exists, and this is no repetition of its import by somebody who may read it. Import under another id, or delete the one that is there.",
    )
    .with("id", session_id.as_str())
}

/// To the byte, or else as values: a file may have been written by another hand.
fn is_same(stored: &[u8], line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let value = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    stored == line || value(line).is_some_and(|line| value(stored) == Some(line))
}
