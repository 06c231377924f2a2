//! An import into a session that is there: line by line against what an export
//! of it would say now. The same is no conflict, anything else is.

use serde_json::Value;

use super::export::Export;
use super::lines::{EndLine, Kind, Line};
use crate::database::Database;
use crate::error::{Code, Error, Result};
use crate::ids::Id;
use crate::json;

pub struct Comparing {
    export: Export,
    page: String,
    at: usize,
    session_id: Id,
}

/// What the address says, and the file need not.
const ADDRESS: [&str; 2] = ["id", "agentId"];

impl Comparing {
    pub fn begin(db: &dyn Database, session_id: &Id, line: &[u8]) -> Result<Self> {
        let mut comparing = Self {
            export: Export::begin(db, session_id)?,
            page: String::new(),
            at: 0,
            session_id: session_id.clone(),
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
        let Line { kind } = json::parse(line)?;
        let is_same = self
            .next_line(db)?
            .is_some_and(|stored| is_same(stored.as_bytes(), line));
        if !is_same {
            return Err(self.differs());
        }
        match kind {
            Kind::End => json::parse::<EndLine>(line).map(|end| Some(end.events.0)),
            _ => Ok(None),
        }
    }

    fn next_line(&mut self, db: &dyn Database) -> Result<Option<&str>> {
        if self.at >= self.page.len() {
            self.at = 0;
            self.page = match self.export.next_page(db)? {
                Some(page) => page,
                None => return Ok(None),
            };
        }
        let rest = self.page.get(self.at..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at += line.len() + 1;
        Ok(Some(line))
    }

    fn differs(&self) -> Error {
        Error::new(
            Code::AlreadyExists,
            "A session with this id exists and is not the one in the file. Import under another id, or delete the one that is there.",
        )
        .with("id", self.session_id.as_str())
    }
}

/// To the byte, or else as values: a file may have been written by another hand.
fn is_same(stored: &[u8], line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let value = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    stored == line || value(line).is_some_and(|line| value(stored) == Some(line))
}
