//! The sessions of a retention run: which have rules, and which are idle.

use super::events::{self, OldEvents, is_busy};
use super::work::StepWork;
use serde_json::Value;

use crate::delete::delete_session;
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::row;
use conversation::log::session_lookup;
use store::erasing::ErasingDatabase;
use store::retention::{Retention, RetentionRules, read_retention};

/// A session with retention rules, its own or the agent's.
pub struct RetainedSession {
    pub number: i64,
    pub id: Id,
    pub is_pinned: bool,
    /// The part of a LangGraph thread that its saver stores here.
    pub thread: Option<ThreadPart>,
    own: Retention,
}

/// What LangGraph's saver stores in a session, according to the session's metadata.
pub enum ThreadPart {
    /// The checkpoints of one namespace.
    Checkpoints(Thread),
    /// The pending writes of the thread with this id, and the names of its namespaces.
    Writes(String),
}

/// A namespace of a thread.
pub struct Thread {
    pub id: String,
    pub namespace: String,
}

impl RetainedSession {
    pub fn rules(&self, agents: RetentionRules) -> RetentionRules {
        if self.is_pinned {
            RetentionRules::default()
        } else {
            self.own.within(agents)
        }
    }
}

row! {
    for RetainedSession {
        number: i64 = "s.number",
        id: &str = "s.id",
        retention: Option<&str> = "s.retention",
        is_pinned: bool = "s.pinned",
        part: Option<&str> = "iif(json_valid(s.metadata), s.metadata ->> '$.langgraph', NULL)",
        thread_id: Option<String> = "iif(json_valid(s.metadata), s.metadata ->> '$.thread', NULL)",
        namespace: Option<String> = "iif(json_valid(s.metadata), s.metadata ->> '$.namespace', NULL)",
    }
    {
        let thread = match part {
            Some("checkpoints") => thread_id
                .zip(namespace)
                .map(|(id, namespace)| ThreadPart::Checkpoints(Thread { id, namespace })),
            Some("writes") => thread_id.map(ThreadPart::Writes),
            Some(_) | None => None,
        };
        Ok(Self {
            number,
            own: read_retention(retention, id)?,
            is_pinned,
            thread,
            id: Id::parse(id.to_owned()).map_err(Error::storage)?,
        })
    }
}

/// The session with this number.
pub fn find_session(db: &dyn Database, number: i64) -> Result<Option<RetainedSession>> {
    session_lookup::find_by_number(db, RetainedSession::COLUMNS, number)
}

/// Whether a namespace of this thread still has checkpoints.
fn has_checkpoints(db: &dyn Database, thread: &str) -> Result<bool> {
    let names = Value::from(vec!["checkpoints", thread]).to_string();
    let begin = names.strip_suffix(']').unwrap_or(&names);
    // The quotation mark of the namespace follows the comma, and `#` is the next character.
    session_lookup::has_between(db, &format!("{begin},\""), &format!("{begin},#"))
}

/// The outcome for a session that may be idle.
pub enum IdleSession {
    /// The session stays.
    Unchanged,
    /// The session was deleted, or would be.
    Deleted,
    /// Its oldest events were deleted. The next step continues.
    Trimmed,
}

/// Deletes the session if nobody has written to it since `cutoff`. A long session is deleted in
/// steps, oldest events first: a write in between keeps the rest.
pub fn delete_if_idle(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session: &RetainedSession,
    cutoff: i64,
    work: &mut StepWork,
) -> Result<IdleSession> {
    work.count_scanned(2);
    let active_at = session_lookup::find_active_at(db, session.number)?;
    if active_at > cutoff || is_busy(db, &session.id)? {
        return Ok(IdleSession::Unchanged);
    }
    // The session of a thread's writes names the namespaces, so it is deleted after the last of
    // them.
    if let Some(ThreadPart::Writes(thread)) = &session.thread
        && has_checkpoints(db, thread)?
    {
        return Ok(IdleSession::Unchanged);
    }
    if !work.is_dry {
        let capacity = work.capacity();
        let oldest = OldEvents::load(db, &session.id, 0, i64::MAX, &capacity, work)?;
        if oldest.has_more() {
            work.delete(oldest.count(), oldest.bytes());
            // Counts the session, but not its summaries.
            let summaries = work.counts.summaries.clone();
            events::trim(db, host, &session.id, &oldest.seqs(), work)?;
            work.counts.summaries = summaries;
            return Ok(IdleSession::Trimmed);
        }
        work.delete(1 + oldest.count(), oldest.bytes());
        delete_session(db, &session.id)?;
        work.change(&session.id);
    }
    work.counts.sessions.add(active_at);
    Ok(IdleSession::Deleted)
}
