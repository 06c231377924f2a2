//! Imports into an agent that is not empty: compares the file's lines with those that an
//! export would write now. Equal lines don't conflict; others do.

use super::export::AgentExport;
use super::lines::ToolLine;
use super::tools::plain_tool;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::json;
use lifecycle::transfer::PagedFile as _;
use lifecycle::transfer::compare::is_same_line;
use lifecycle::transfer::lines::render;

/// How an export starts the line of a frozen prompt, of a proposal, and of a tool server.
const PROMPT_LINE: &str = "{\"type\":\"prompt\"";
const PROPOSAL_LINE: &str = "{\"type\":\"proposal\"";
const TOOL_LINE: &str = "{\"type\":\"tool\"";

/// The agent's own lines, as an export would write them now.
pub struct OwnLines {
    export: AgentExport,
    page: String,
    at: usize,
    /// If `false`, lines that an import omits are skipped.
    accepts_sources: bool,
}

impl OwnLines {
    pub fn new(accepts_sources: bool) -> Self {
        Self {
            export: AgentExport::of_agents_own(),
            page: String::new(),
            at: 0,
            accepts_sources,
        }
    }

    /// Refuses a line that differs from the next one.
    pub fn compare(&mut self, db: &dyn Database, line: &[u8]) -> Result<()> {
        if !self.accepts_sources && is_left_out(line) {
            return Ok(());
        }
        let line = line.trim_ascii();
        let stored = self.next_line(db)?.ok_or_else(not_empty)?;
        let is_same = is_same_line(stored.as_bytes(), line, self.accepts_sources)
            || is_same_tool(stored.as_bytes(), line);
        if is_same { Ok(()) } else { Err(not_empty()) }
    }

    /// Refuses a file that has fewer lines.
    pub fn end(&mut self, db: &dyn Database) -> Result<()> {
        match self.next_line(db)? {
            None => Ok(()),
            Some(_) => Err(not_empty()),
        }
    }

    fn next_line(&mut self, db: &dyn Database) -> Result<Option<String>> {
        loop {
            if self.at >= self.page.len() {
                if self.export.is_at_sessions() {
                    return Ok(None);
                }
                self.at = 0;
                self.page = self.export.next_page(db)?.unwrap_or_default();
                continue;
            }
            let rest = self.page.get(self.at..).unwrap_or_default();
            let line = rest.split('\n').next().unwrap_or_default();
            self.at += line.len() + 1;
            if self.accepts_sources || !is_left_out(line.as_bytes()) {
                return Ok(Some(line.to_owned()));
            }
        }
    }
}

/// Whether both are tool lines with the same meaning: a handwritten line may omit what an
/// export writes.
fn is_same_tool(stored: &[u8], line: &[u8]) -> bool {
    let plain = |line: &[u8]| {
        let line = plain_tool(json::parse(line).ok()?).ok()?;
        json::decode_tree(&render(&line).ok()?).ok()
    };
    plain(line).is_some_and(|line| Some(line) == plain(stored))
}

/// Whether an import omits this line unless the sender trusts the file.
fn is_left_out(line: &[u8]) -> bool {
    line.starts_with(PROMPT_LINE.as_bytes())
        || line.starts_with(PROPOSAL_LINE.as_bytes())
        || (line.starts_with(TOOL_LINE.as_bytes())
            && json::parse::<ToolLine>(line).is_ok_and(|line| line.server.is_some()))
}

fn not_empty() -> Error {
    Error::new(
        Code::AlreadyExists,
        "This agent is not empty, and its data differs from the file. Import the file into an \
         agent with another name, or `destroy` this one first.",
    )
}
