//! The journal of a session's compactions, in addition to the overlays: the session's own settings,
//! the outcomes of the last attempts and their reasons, and the position of the window. One JSON
//! value in the session's row.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::OwnSettings;
use crate::working_context::budget::WindowPosition;
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::{self};
use conversation::log::sessions::LastCompactionError;
use conversation::log::sessions::{find_compaction, write_compaction};
use store::calibration::Calibration;
use store::learned_windows::LearnedWindow;

/// How many decisions the journal stores.
const MAX_DECISIONS: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Journal {
    pub settings: OwnSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastCompactionError>,
    /// The position of the window of chat turns. `None`: the window covers the whole branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowPosition>,
    /// The correction of estimates that the session's turns have shown, once its last turn has no
    /// row any more (`conversation/session/last_turns.rs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The event that ended the session's last turn, once the turn has no row any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<i64>,
    /// The highest estimates at which this session's requests may be sent to a model, learned from
    /// refusals.
    #[serde(rename = "lessons", skip_serializing_if = "Vec::is_empty")]
    pub learned_windows: Vec<LearnedWindow>,
    /// Newest last.
    pub decisions: Vec<CompactionDecision>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionDecision {
    pub at: i64,
    /// `true`: the conversation's growth triggered this compaction; `false`: a caller
    /// asked for it.
    pub is_auto: bool,
    pub reason: String,
    pub tokens_before: i64,
    pub tokens_after: i64,
}

pub fn load_journal(db: &dyn Database, session_id: &Id) -> Result<Journal> {
    let journal = find_compaction(db, session_id)?
        .ok_or_else(|| Error::session_not_found(session_id.as_str()))?;
    read_journal(session_id, journal.as_deref())
}

/// Reads the journal of a session, if it has one.
pub fn read_journal(session_id: &Id, stored: Option<&str>) -> Result<Journal> {
    match stored {
        Some(json) => json::decode(json)
            .map_err(|_| Error::corrupt_row(session_id.as_str(), "compaction settings")),
        None => Ok(Journal::default()),
    }
}

/// The journal of a new session that has settings of its own.
pub fn render_settings(settings: OwnSettings) -> Result<String> {
    let journal = Journal {
        settings,
        ..Journal::default()
    };
    json::encode(&journal)
}

/// Loads, changes and stores the journal. Part of a transaction. Leaves the session's
/// last activity as it is: only its conversation counts as activity.
pub fn change_journal(
    db: &dyn Database,
    session_id: &Id,
    change: impl FnOnce(&mut Journal),
) -> Result<()> {
    let before = load_journal(db, session_id)?;
    let mut journal = before.clone();
    change(&mut journal);
    if journal == before {
        return Ok(());
    }
    let surplus = journal.decisions.len().saturating_sub(MAX_DECISIONS);
    journal.decisions.drain(..surplus);
    write_compaction(db, session_id, json::encode(&journal)?)
}

/// Records a failure, unless the session was deleted in the meantime.
pub fn record_failure(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    seq: i64,
    error: &Error,
    decision: CompactionDecision,
) -> Result<()> {
    change_journal(db, session_id, |journal| {
        let attempts = journal.last_error.as_ref().map_or(0, |last| last.attempts);
        journal.last_error = Some(LastCompactionError {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
            at: host.now_ms(),
            attempts: attempts.saturating_add(1),
            seq,
        });
        journal.decisions.push(decision);
    })
}
