//! Exports the whole agent, one page of lines at a time. A page is rendered when the reader
//! requests it, and has about a megabyte, or one long line.
//!
//! The export has the state at the time when each page is rendered. A session that is created in
//! the meantime comes last; one that is deleted while its lines are written is marked with a
//! `session_deleted` line.

use super::lines::{
    AgentLine, AgentLineKind, CursorLine, DoneLine, FORMAT, GoneLine, SettingsOut, UsageLine,
};
use super::proposals::add_proposals;
use super::tools::add_tools;

use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::Count;
use chat::tools::rows::load_removed;
use context::compaction::configure::load_agents;
use context::compaction::settings::OwnSettings;
use conversation::index::progress::find_number;
use conversation::session::last_turns::load_days;
use conversation::session::usage_days::{DayUsage, add, load_agents_days};
use lifecycle::transfer::export::{EventsPosition, Export, ExportEnd, SessionsAhead};
use lifecycle::transfer::lines::{SettingsPart, count, render};
use lifecycle::transfer::memory::export::MemoryExport;
use lifecycle::transfer::{PAGE_BYTES, PagedFile};
use store::config::{ConfigLayer, load_own};

/// The most `usage` lines: fifty years of one model. The newest days come first in the
/// index, so the oldest are left out.
const MAX_USAGE_LINES: usize = 20_000;

/// Short sessions share a page until it has this many bytes.
const SHARED_PAGE_BYTES: usize = 64 << 10;

/// The scope of the agent's own memory.
const AGENT_SCOPE: &str = "";

/// The section to write next.
enum AgentSection {
    Agent,
    Settings,
    Tools {
        after: String,
    },
    Usage,
    Proposals {
        after: i64,
    },
    Memory(Box<MemoryExport>),
    /// The sessions with higher numbers.
    Sessions {
        after_number: i64,
    },
    Session {
        number: i64,
        export: Box<Export>,
    },
    Over,
}

pub struct AgentExport {
    section: AgentSection,
    ahead: SessionsAhead,
    /// How many whole sessions the file has so far.
    sessions: i64,
}

/// The position after a `cursor` line, as its text gives it.
#[derive(Debug, PartialEq)]
struct AgentCursor {
    sessions: i64,
    /// The session. The time of its creation distinguishes it from a later one with its id.
    session_id: Id,
    created_at: i64,
    /// `None`: after the whole session.
    events: Option<EventsPosition>,
}

impl AgentCursor {
    fn render(&self) -> Result<String> {
        let Self {
            sessions,
            created_at,
            ..
        } = self;
        let position = match self.events {
            Some(EventsPosition { seq, events, end }) => {
                let end =
                    end.map_or_else(String::new, |end| format!("-{}-{}", end.seq, end.cursor));
                format!("{seq}.{events}{end}")
            }
            None => ".".to_owned(),
        };
        let id = self.session_id.as_str();
        render(&CursorLine {
            kind: AgentLineKind::Cursor,
            after: format!("{sessions}.{created_at}.{position}.{id}"),
        })
    }

    fn parse(text: &str) -> Result<Self> {
        Self::read(text).ok_or_else(|| {
            bad_cursor("`after` must be the `after` of a `cursor` line of this agent's file.")
        })
    }

    fn read(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u32>().map(i64::from).ok();
        let time = |text: &str| text.parse::<i64>().ok().filter(|time| *time >= 0);
        let mut parts = text.splitn(5, '.');
        let mut next = || parts.next();
        let (sessions, created_at) = (number(next()?)?, time(next()?)?);
        let events = match (next()?, next()?) {
            ("", "") => None,
            (seq, events) => {
                let (events, end) = match events.split_once('-') {
                    None => (events, None),
                    Some((events, end)) => {
                        let (seq, cursor) = end.split_once('-')?;
                        let (seq, cursor) = (time(seq)?, time(cursor)?);
                        (events, Some(ExportEnd { seq, cursor }))
                    }
                };
                Some(EventsPosition {
                    seq: time(seq)?,
                    events: time(events)?,
                    end,
                })
            }
        };
        Some(Self {
            sessions,
            session_id: Id::parse(next()?.to_owned()).ok()?,
            created_at,
            events,
        })
    }
}

fn bad_cursor(message: &str) -> Error {
    Error::invalid("after", message)
}

impl AgentExport {
    /// Begins the export. `after`: a cursor of an interrupted export.
    pub fn begin(db: &dyn Database, after: Option<&str>) -> Result<Self> {
        match after {
            None => Ok(Self {
                section: AgentSection::Agent,
                ahead: SessionsAhead::default(),
                sessions: 0,
            }),
            Some(after) => Self::resume(db, &AgentCursor::parse(after)?),
        }
    }

    fn resume(db: &dyn Database, cursor: &AgentCursor) -> Result<Self> {
        let found = find_number(db, cursor.session_id.as_str())?;
        let session_deleted = || {
            bad_cursor(
                "The session in which the export stopped no longer exists. Export the agent from \
                 its beginning.",
            )
        };
        let number = found.ok_or_else(session_deleted)?;
        let mut export = Export::begin_in_agent(db, &cursor.session_id)?;
        if export.created_at() != cursor.created_at {
            return Err(session_deleted());
        }
        let section = match cursor.events {
            None => AgentSection::Sessions {
                after_number: number,
            },
            Some(position) => {
                export.resume(position);
                AgentSection::Session {
                    number,
                    export: Box::new(export),
                }
            }
        };
        Ok(Self {
            section,
            ahead: SessionsAhead::default(),
            sessions: cursor.sessions,
        })
    }

    /// An export of what precedes the sessions, to compare a file with.
    pub fn of_agents_own() -> Self {
        Self {
            section: AgentSection::Agent,
            ahead: SessionsAhead::default(),
            sessions: 0,
        }
    }

    /// Whether the next page begins with the sessions, or with the end of the file.
    pub fn is_at_sessions(&self) -> bool {
        matches!(
            self.section,
            AgentSection::Sessions { .. } | AgentSection::Session { .. } | AgentSection::Over
        )
    }

    /// How many whole sessions the pages had.
    pub fn sessions(&self) -> i64 {
        self.sessions
    }

    /// The next section's lines.
    fn add(&mut self, db: &dyn Database, page: &mut String) -> Result<()> {
        let section = std::mem::replace(&mut self.section, AgentSection::Over);
        self.section = match section {
            AgentSection::Agent => {
                page.push_str(&render(&AgentLine {
                    kind: AgentLineKind::Agent,
                    format: Count(FORMAT),
                    continued: false,
                })?);
                AgentSection::Settings
            }
            AgentSection::Settings => {
                add_settings(db, page)?;
                AgentSection::Tools {
                    after: String::new(),
                }
            }
            AgentSection::Tools { after } => match add_tools(db, &after, page)? {
                Some(after) => AgentSection::Tools { after },
                None => AgentSection::Usage,
            },
            AgentSection::Usage => {
                add_usage(db, page)?;
                AgentSection::Proposals { after: 0 }
            }
            AgentSection::Proposals { after } => match add_proposals(db, after, page)? {
                Some(after) => AgentSection::Proposals { after },
                None => AgentSection::Memory(Box::default()),
            },
            AgentSection::Memory(mut memory) => {
                if memory.add(db, AGENT_SCOPE, page)? {
                    AgentSection::Memory(memory)
                } else {
                    AgentSection::Sessions { after_number: 0 }
                }
            }
            AgentSection::Sessions { after_number } => self.next_session(db, after_number, page)?,
            AgentSection::Session { number, export } => {
                self.add_session(db, number, export, page)?
            }
            AgentSection::Over => AgentSection::Over,
        };
        Ok(())
    }

    fn next_session(
        &mut self,
        db: &dyn Database,
        after_number: i64,
        page: &mut String,
    ) -> Result<AgentSection> {
        let Some((number, export)) = self.ahead.begin_next(db, after_number)? else {
            page.push_str(&render(&DoneLine {
                kind: AgentLineKind::Done,
                sessions: count(self.sessions),
            })?);
            return Ok(AgentSection::Over);
        };
        Ok(AgentSection::Session {
            number,
            export: Box::new(export),
        })
    }

    fn add_session(
        &mut self,
        db: &dyn Database,
        number: i64,
        mut export: Box<Export>,
        page: &mut String,
    ) -> Result<AgentSection> {
        let next = AgentSection::Sessions {
            after_number: number,
        };
        match export.next_page(db) {
            Ok(Some(lines)) => {
                if page.is_empty() {
                    *page = lines;
                } else {
                    page.push_str(&lines);
                }
            }
            Ok(None) => return Ok(next),
            Err(error) if error.code == Code::SessionNotFound => {
                page.push_str(&render(&GoneLine {
                    kind: AgentLineKind::Gone,
                    id: export.session_id().clone(),
                })?);
                return Ok(next);
            }
            Err(error) => return Err(error),
        }
        let is_over = export.is_over();
        if is_over {
            self.sessions += 1;
        }
        let position = export.find_position();
        if is_over || position.is_some() {
            let cursor = AgentCursor {
                sessions: self.sessions,
                session_id: export.session_id().clone(),
                created_at: export.created_at(),
                events: position,
            };
            page.push_str(&cursor.render()?);
        }
        Ok(if is_over {
            next
        } else {
            AgentSection::Session { number, export }
        })
    }
}

impl PagedFile for AgentExport {
    /// The next lines. The lines before the sessions never share a page with them.
    fn next_page(&mut self, db: &dyn Database) -> Result<Option<String>> {
        if matches!(self.section, AgentSection::Over) {
            return Ok(None);
        }
        let mut page = String::new();
        if !self.is_at_sessions() {
            while !self.is_at_sessions() && page.len() < PAGE_BYTES {
                self.add(db, &mut page)?;
            }
            return Ok(Some(page));
        }
        while page.len() < SHARED_PAGE_BYTES && !matches!(self.section, AgentSection::Over) {
            self.add(db, &mut page)?;
        }
        // Others may write before the next page.
        self.ahead.forget();
        if let AgentSection::Session { export, .. } = &mut self.section {
            export.pause();
        }
        Ok(Some(page))
    }
}

fn add_settings(db: &dyn Database, page: &mut String) -> Result<()> {
    let own = load_own(db)?;
    let compaction = load_agents(db)?;
    let line = SettingsOut {
        kind: AgentLineKind::Settings,
        config: (own != ConfigLayer::default()).then_some(own),
        compaction: (compaction != OwnSettings::default()).then(|| SettingsPart::from(compaction)),
        removed_tools: load_removed(db)?,
    };
    let is_empty =
        line.config.is_none() && line.compaction.is_none() && line.removed_tools.is_empty();
    if !is_empty {
        page.push_str(&render(&line)?);
    }
    Ok(())
}

/// Adds the agent's spending. The part in the rows of last turns is added to its days: an
/// import writes all of it to the agent's table.
fn add_usage(db: &dyn Database, page: &mut String) -> Result<()> {
    let mut days = load_agents_days(db, 0, MAX_USAGE_LINES)?;
    for day in load_days(db, None)? {
        add(&mut days, day);
    }
    let key = |day: &DayUsage| (day.day, day.model.clone().unwrap_or_default());
    days.sort_by_cached_key(key);
    for day in days {
        page.push_str(&render(&UsageLine {
            kind: AgentLineKind::Usage,
            day,
        })?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips() {
        let position = |end| EventsPosition {
            seq: 1200,
            events: 1100,
            end,
        };
        let end = ExportEnd {
            seq: 1300,
            cursor: 1_363_148_803,
        };
        for events in [None, Some(position(None)), Some(position(Some(end)))] {
            let cursor = AgentCursor {
                sessions: 3,
                session_id: Id::parse("a.b .c".to_owned()).unwrap(),
                created_at: 1_700_000_000_000,
                events,
            };
            let line: CursorLine = serde_json::from_str(&cursor.render().unwrap()).unwrap();
            assert_eq!(AgentCursor::parse(&line.after).unwrap(), cursor);
        }
        for bad in [
            "",
            "1.2.3",
            "1.2.3.4",
            "-1.2.3.4.s",
            "1.x.3.4.s",
            "1.2..4.s",
            "1.2.3.4-5.s",
            "1.2.3.4-5-6-7.s",
        ] {
            assert_eq!(
                AgentCursor::parse(bad).unwrap_err().details()["field"],
                "after"
            );
        }
    }
}
