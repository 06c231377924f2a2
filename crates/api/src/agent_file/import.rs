//! Imports the file of a whole agent into an empty agent.
//!
//! The agent's own lines are written first. A marker in the configuration ([`RESTORING`])
//! exists until the last of them is written; an import that finds the marker deletes what
//! an earlier one wrote, and starts again. Then the sessions follow. Each becomes visible
//! with its last line, and never partially.
//!
//! So an interrupted import can be repeated with the same file. Lines that already exist
//! are compared and not written. An agent with other data is left unchanged, and the import
//! is refused: two agents' sessions are never mixed. Sessions of an earlier import are the
//! first ones of the file, so before the first new one, the agent may have no others.

use crate::json_schema::JsonSchema;
use serde::Serialize;

use super::import_marker::{self, check_restoring, write_memory};
use super::lines::{
    AgentLine, AgentLineHead, AgentLineKind, CursorLine, DoneLine, GoneLine, ToolLine, UsageLine,
    is_of_sessions, is_session, line_out_of_order, memory_kind,
};
use super::own_lines::OwnLines;
use super::proposals::{MAX_PROPOSALS, write_proposal};
use super::settings::write_settings;
use super::tools::{into_server, into_tool};
use crate::file_import::FileImport;
use crate::operation::{Agent, Reply};
use base::database::{Database, MAX_LIST_BYTES, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use chat::address::tool_headers::ToolHeaders;
use chat::tools::mcp::server::MAX_SERVERS;
use chat::tools::registered::MAX_TOOLS;
use chat::tools::rows::{RowToWrite, write_row};
use conversation::log::sessions::session_exists;
use conversation::session::numbers::has_more_sessions;
use conversation::session::usage_days::{DayUsage, count_for_agent};
use lifecycle::transfer::import::Import;
use lifecycle::transfer::line_splitter::LineSplitter;
use lifecycle::transfer::lines::{LineKind, SessionLine};
use lifecycle::transfer::memory::import::MemoryImport;
use lifecycle::transfer::rights::ImportSender;
use lifecycle::transfer::target::{ImportTarget, OmittedPart, at_line};
use store::stored::{RESTORING, delete_stored};

/// The most of the agent's own lines in a transaction, and their approximate bytes.
const MAX_BATCH: usize = 500;
const MAX_BATCH_BYTES: usize = MAX_LIST_BYTES;

/// The most `usage` lines of a file: an export writes no more.
const MAX_USAGE_LINES: usize = 20_000;

/// The outcome of an import.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedAgent {
    /// The number of sessions in the file.
    pub sessions: i64,
    /// The number of sessions that this import wrote.
    pub imported: i64,
    /// The number of sessions that existed already.
    pub skipped: i64,
    /// The number of the sessions' events.
    pub events: i64,
    /// The parts of the file that this import left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub left_out: Vec<OmittedPart>,
    /// The tools with a header whose value is not in the file. Calls of such a tool fail
    /// until `defineTool` defines it again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tools_without_headers: Vec<String>,
    /// The tools that this Worker can't reach: their service is not bound, or their origin
    /// is not in `TOOL_ORIGINS`. Calls of such a tool fail until the Worker is configured
    /// for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tools_unavailable: Vec<String>,
}

/// How the next line is processed.
enum AgentImportState {
    Empty,
    /// The agent's own lines are written.
    Writing(Box<MemoryImport>),
    /// The agent's own lines already exist, and are being compared.
    ImportComparison(Box<OwnLines>),
    /// Between two sessions.
    Sessions,
    /// Within a session.
    Session(Box<Import>),
    Done,
}

pub struct AgentImport<'a> {
    agent: &'a Agent<'a>,
    /// Whether lines are accepted that reference other services, or that no operation could
    /// write.
    allows_sources: bool,
    lines: LineSplitter,
    state: AgentImportState,
    usage: Vec<DayUsage>,
    usage_lines: usize,
    outcome: ImportedAgent,
    tools: usize,
    servers: usize,
    proposals: usize,
    /// The marker that this import has written under [`RESTORING`], until all of the
    /// agent's own lines are written.
    mark: Option<String>,
    /// Whether the agent's sessions were confirmed to be those of the file.
    sessions_are_known: bool,
}

impl<'a> AgentImport<'a> {
    pub fn new(agent: &'a Agent<'a>, allows_sources: bool) -> Self {
        Self {
            agent,
            allows_sources,
            lines: LineSplitter::new(1),
            state: AgentImportState::Empty,
            usage: Vec::new(),
            usage_lines: 0,
            outcome: ImportedAgent::default(),
            tools: 0,
            servers: 0,
            proposals: 0,
            mark: None,
            sessions_are_known: false,
        }
    }

    /// Completes the import at the end of the file.
    pub fn end(mut self, db: &dyn Database, host: &dyn Host) -> Result<ImportedAgent> {
        let rest = self.lines.take_rest();
        let ended = self.import(db, host, rest).and_then(|()| match self.state {
            AgentImportState::Done => Ok(()),
            _ => Err(at_line(
                self.lines.last_number(),
                Error::invalid(
                    "type",
                    "The file ends before its `done` line: it is truncated. The complete sessions \
                     were imported. Send the whole file again; these sessions will be skipped.",
                ),
            )),
        });
        match ended {
            Ok(()) => Ok(self.outcome),
            Err(error) => {
                self.abandon(db)?;
                Err(error)
            }
        }
    }

    fn import(&mut self, db: &dyn Database, host: &dyn Host, line: Vec<u8>) -> Result<()> {
        let number = self.lines.pass();
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.import_line(db, host, line, number)
            .map_err(|error| at_line(number, error))
    }

    fn import_line(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        line: Vec<u8>,
        number: u64,
    ) -> Result<()> {
        let AgentLineHead { kind } = json::parse(&line)?;
        match std::mem::replace(&mut self.state, AgentImportState::Sessions) {
            AgentImportState::Empty => self.begin(db, host, kind, &line),
            AgentImportState::Writing(memory) => {
                self.import_own(db, host, memory, kind, line, number)
            }
            AgentImportState::ImportComparison(mut own) => {
                if is_of_sessions(kind, &line)? {
                    own.end(db)?;
                    self.import_of_sessions(db, host, kind, line, number)
                } else {
                    self.record_left_out(kind, &line)?;
                    own.compare(db, &line)?;
                    self.state = AgentImportState::ImportComparison(own);
                    Ok(())
                }
            }
            AgentImportState::Sessions => self.import_of_sessions(db, host, kind, line, number),
            AgentImportState::Session(import) => {
                self.import_in_session(db, host, import, kind, line, number)
            }
            AgentImportState::Done => Err(Error::invalid(
                "type",
                "Nothing may follow the `done` line.",
            )),
        }
    }

    fn begin(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        kind: AgentLineKind,
        line: &[u8],
    ) -> Result<()> {
        if kind != AgentLineKind::Agent {
            return Err(Error::invalid(
                "type",
                "The first line must be the `agent` line, as an export of an agent writes it. The file of one session is imported at `…/sessions/{sessionId}/import`.",
            ));
        }
        let head: AgentLine = json::parse(line)?;
        head.check()?;
        if head.continued {
            // The previous part was compared with the agent.
            self.sessions_are_known = true;
            return Ok(());
        }
        self.mark = import_marker::begin(db, host)?;
        self.state = if self.mark.is_some() {
            AgentImportState::Writing(Box::new(MemoryImport::of_agent(self.target(None)?)))
        } else {
            let mut own = OwnLines::new(self.allows_sources);
            own.compare(db, line)?;
            AgentImportState::ImportComparison(Box::new(own))
        };
        Ok(())
    }

    /// `session_id`: `None` for the agent's own memory.
    fn target(&self, session_id: Option<Id>) -> Result<ImportTarget> {
        let own = || Id::parse("agent".to_owned()).map_err(Error::storage);
        Ok(ImportTarget {
            sender: ImportSender {
                session_id: session_id.map_or_else(own, Ok)?,
                caller: self.agent.caller.clone(),
                allows_sources: self.allows_sources,
                is_of_agent: true,
            },
            agent: self.agent.name.to_owned(),
            deployed: std::rc::Rc::clone(&self.agent.deployed.memory.config),
        })
    }

    /// Processes one of the agent's own lines.
    fn import_own(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        mut memory: Box<MemoryImport>,
        kind: AgentLineKind,
        line: Vec<u8>,
        number: u64,
    ) -> Result<()> {
        if is_of_sessions(kind, &line)? {
            self.conclude_own(db, &mut memory)?;
            return self.import_of_sessions(db, host, kind, line, number);
        }
        match kind {
            AgentLineKind::Settings => write_settings(self.agent, self.mark.as_deref(), db, &line)?,
            AgentLineKind::Tool => self.write_tool(db, &line)?,
            AgentLineKind::Usage => self.import_usage(db, &line)?,
            AgentLineKind::Proposal => self.import_proposal(db, &line)?,
            AgentLineKind::Other => {
                let kind = memory_kind(&line)?;
                memory.import(kind, &line, number)?;
                let (lines, bytes) = memory.pending();
                if lines >= MAX_BATCH || bytes >= MAX_BATCH_BYTES {
                    write_memory(db, &mut memory, self.mark.as_deref())?;
                }
            }
            _ => return Err(line_out_of_order()),
        }
        self.state = AgentImportState::Writing(memory);
        Ok(())
    }

    /// Writes the rest of the agent's own lines, and removes the marker.
    fn conclude_own(&mut self, db: &dyn Database, memory: &mut MemoryImport) -> Result<()> {
        self.leave_out(&memory.left_out());
        let usage = std::mem::take(&mut self.usage);
        atomically(db, || {
            check_restoring(db, self.mark.as_deref())?;
            memory.write(db)?;
            count_for_agent(db, &usage)?;
            delete_stored(db, RESTORING)
        })?;
        self.mark = None;
        memory.written();
        Ok(())
    }

    fn leave_out(&mut self, parts: &[OmittedPart]) {
        for part in parts {
            if !self.outcome.left_out.contains(part) {
                self.outcome.left_out.push(*part);
            }
        }
    }

    fn write_tool(&mut self, db: &dyn Database, line: &[u8]) -> Result<()> {
        let line: ToolLine = json::parse(line)?;
        let defined_at = line.defined_at.0;
        let headers = ToolHeaders::without_values(line.headers.clone())?;
        if !line.headers.is_empty() {
            self.outcome.tools_without_headers.push(line.name.clone());
        }
        if line.server.is_some() {
            if !self.allows_sources {
                self.leave_out(&[OmittedPart::Servers]);
                self.outcome
                    .tools_without_headers
                    .retain(|name| *name != line.name);
                return Ok(());
            }
            self.servers += 1;
            if self.servers > MAX_SERVERS {
                return Err(too_many("servers of tools", MAX_SERVERS));
            }
            let server = into_server(line, headers)?;
            return atomically(db, || {
                check_restoring(db, self.mark.as_deref())?;
                write_row(db, defined_at, RowToWrite::Server(&server))
            });
        }
        self.tools += 1;
        if self.tools > MAX_TOOLS as usize {
            return Err(too_many("tools", MAX_TOOLS as usize));
        }
        let mut tool = into_tool(&line)?;
        match tool.check_address(self.agent.outbound) {
            Ok(_) => {}
            Err(error) if matches!(error.code, Code::NotConfigured | Code::Forbidden) => {
                self.outcome.tools_unavailable.push(line.name.clone());
            }
            Err(error) => return Err(error),
        }
        tool.headers = headers;
        atomically(db, || {
            check_restoring(db, self.mark.as_deref())?;
            write_row(db, defined_at, RowToWrite::Tool(&tool))
        })
    }

    fn import_proposal(&mut self, db: &dyn Database, line: &[u8]) -> Result<()> {
        if !self.allows_sources {
            self.leave_out(&[OmittedPart::Proposals]);
            return Ok(());
        }
        self.proposals += 1;
        if self.proposals > MAX_PROPOSALS {
            return Err(too_many("`proposal` lines", MAX_PROPOSALS));
        }
        atomically(db, || {
            check_restoring(db, self.mark.as_deref())?;
            write_proposal(db, line)
        })
    }

    fn import_usage(&mut self, db: &dyn Database, line: &[u8]) -> Result<()> {
        let line: UsageLine = json::parse(line)?;
        line.check()?;
        self.usage_lines += 1;
        if self.usage_lines > MAX_USAGE_LINES {
            return Err(too_many("`usage` lines", MAX_USAGE_LINES));
        }
        self.usage.push(line.day);
        if self.usage.len() >= MAX_BATCH {
            let days = std::mem::take(&mut self.usage);
            return atomically(db, || {
                check_restoring(db, self.mark.as_deref())?;
                count_for_agent(db, &days)
            });
        }
        Ok(())
    }

    /// Records what an import would omit of a compared line.
    fn record_left_out(&mut self, kind: AgentLineKind, line: &[u8]) -> Result<()> {
        if kind == AgentLineKind::Other && memory_kind(line)? == LineKind::Prompt {
            if !self.allows_sources {
                self.leave_out(&[OmittedPart::Prompt]);
            }
        } else if kind == AgentLineKind::Proposal && !self.allows_sources {
            self.leave_out(&[OmittedPart::Proposals]);
        } else if kind == AgentLineKind::Tool {
            let line: ToolLine = json::parse(line)?;
            if line.server.is_some() && !self.allows_sources {
                self.leave_out(&[OmittedPart::Servers]);
            } else if !line.headers.is_empty() {
                self.outcome.tools_without_headers.push(line.name.clone());
            }
            if line.server.is_none()
                && into_tool(&line)?
                    .check_address(self.agent.outbound)
                    .is_err()
            {
                self.outcome.tools_unavailable.push(line.name);
            }
        }
        Ok(())
    }

    /// Processes a line between two sessions.
    fn import_of_sessions(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        kind: AgentLineKind,
        line: Vec<u8>,
        number: u64,
    ) -> Result<()> {
        match kind {
            AgentLineKind::Cursor => {
                json::parse::<CursorLine>(&line)?;
                self.state = AgentImportState::Sessions;
                Ok(())
            }
            AgentLineKind::Done => {
                let done: DoneLine = json::parse(&line)?;
                if done.sessions.0 != self.outcome.sessions {
                    return Err(Error::invalid(
                        "sessions",
                        format!(
                            "`sessions` is {}, but the file has {}: lines were lost.",
                            done.sessions.0, self.outcome.sessions
                        ),
                    ));
                }
                self.state = AgentImportState::Done;
                Ok(())
            }
            AgentLineKind::Other if is_session(&line)? => {
                let session: SessionLine = json::parse(&line)?;
                self.check_sessions(db, &session.id)?;
                let target = self.target(Some(session.id))?;
                let mut import = Box::new(Import::begin_at(target, number));
                import.push_line(db, host, line, number)?;
                self.state = AgentImportState::Session(import);
                Ok(())
            }
            _ => Err(line_out_of_order()),
        }
    }

    /// Refuses the file if the agent has a session that is not from the file. This is so if
    /// other sessions exist, although this one, the first new one, doesn't.
    fn check_sessions(&mut self, db: &dyn Database, id: &Id) -> Result<()> {
        if self.sessions_are_known || session_exists(db, id)? {
            return Ok(());
        }
        if has_more_sessions(db, self.outcome.skipped)? {
            return Err(Error::new(
                Code::AlreadyExists,
                format!(
                    "This agent has sessions that are not in the file, so session `{id}` was not \
                     imported: the sessions of two agents would be mixed. Import the file into an \
                     agent with another name, or `destroy` this one first."
                ),
            ));
        }
        self.sessions_are_known = true;
        Ok(())
    }

    /// Processes a line within a session.
    fn import_in_session(
        &mut self,
        db: &dyn Database,
        host: &dyn Host,
        mut import: Box<Import>,
        kind: AgentLineKind,
        line: Vec<u8>,
        number: u64,
    ) -> Result<()> {
        match kind {
            AgentLineKind::Cursor => {
                json::parse::<CursorLine>(&line)?;
                self.state = AgentImportState::Session(import);
                return Ok(());
            }
            AgentLineKind::Gone => {
                json::parse::<GoneLine>(&line)?;
                return import.abandon(db);
            }
            AgentLineKind::Other => {}
            _ => {
                import.abandon(db)?;
                return Err(line_out_of_order());
            }
        }
        import.push_line(db, host, line, number)?;
        if !import.is_at_end() {
            self.state = AgentImportState::Session(import);
            return Ok(());
        }
        let existed = import.existed();
        let imported = import.finish(db, host)?;
        self.outcome.sessions += 1;
        if existed {
            self.outcome.skipped += 1;
        } else {
            self.outcome.imported += 1;
        }
        self.outcome.events += imported.events;
        self.leave_out(&imported.left_out);
        Ok(())
    }
}

impl FileImport for AgentImport<'_> {
    fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()> {
        let mut take_all = || {
            self.lines.receive(bytes.len())?;
            let mut rest = bytes;
            while let Some(line) = self.lines.cut(&mut rest)? {
                self.import(db, host, line)?;
            }
            Ok(())
        };
        let outcome = take_all();
        if outcome.is_err() {
            // A failed session deletes its rows itself. If that fails, too, the next import
            // deletes them.
            let _ = self.abandon(db);
        }
        outcome
    }

    fn buffered_bytes(&self) -> usize {
        self.lines.buffered_bytes()
    }

    /// Deletes the rows of the incomplete session, and the agent's own rows if their lines were
    /// incomplete. Complete sessions stay.
    fn abandon(&mut self, db: &dyn Database) -> Result<()> {
        if let Some(mark) = self.mark.take() {
            import_marker::delete_written_rows(db, &mark)?;
        }
        match std::mem::replace(&mut self.state, AgentImportState::Sessions) {
            AgentImportState::Session(mut import) => import.abandon(db),
            _ => Ok(()),
        }
    }

    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply> {
        Reply::json(&self.end(db, host)?)
    }
}

fn too_many(what: &str, most: usize) -> Error {
    Error::invalid(
        "type",
        format!("An agent can have at most {most} {what}, and so can an exported file."),
    )
}
