//! Purges events, messages and sessions, in one transaction that leaves no text behind. In addition
//! to the log, a purge removes the summaries that covered its events, and the stored turns that
//! wrote them.

use std::collections::BTreeSet;

use crate::delete::delete_session;
use crate::pending_import;
use base::database::{Database, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use conversation::log::find::find_seqs;
use conversation::messages::delete::{FoundMessages, delete_events};
use conversation::messages::derived::{CoveringSummary, delete_derived};
use conversation::session::last_turns;
use memory::proposals::erase::erase_of_events;
use store::erased::Erasure;
use store::erasing::ErasingDatabase;

/// Erases those of `ids` that the session has; returns how many, and the counts.
pub fn purge_events(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<(usize, Erasure)> {
    erase(db, |db| {
        let seqs = find_seqs(db, session_id, ids.iter())?;
        erase_around(db, host, session_id, &seqs.into_values().collect())?;
        delete_events(db, host, session_id, ids)
    })
}

/// Erases whole messages; returns how many existed, and the counts.
pub fn purge_messages(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<(usize, Erasure)> {
    erase(db, |db| {
        // Removing a summary joins messages that it split.
        let messages = FoundMessages::find(db, session_id, ids)?;
        erase_around(
            db,
            host,
            session_id,
            &messages.seqs.iter().copied().collect(),
        )?;
        messages.delete(db, host, session_id)
    })
}

/// Erases a session and all that belongs to it, and a pending import under its id; `false`: there
/// is no such session.
pub fn purge_session(db: &dyn Database, id: &Id) -> Result<(bool, Erasure)> {
    erase(db, |db| {
        let existed = delete_session(db, id)?;
        if !existed {
            pending_import::forget(db, id)?;
        }
        Ok(existed)
    })
}

fn erase<T>(
    db: &dyn Database,
    delete: impl FnOnce(&ErasingDatabase<'_>) -> Result<T>,
) -> Result<(T, Erasure)> {
    atomically(db, || {
        let db = ErasingDatabase::of_purge(db)?;
        let deleted = delete(&db)?;
        Ok((deleted, db.finish()?))
    })
}

/// Erases what other rows contain of these events, before the events are deleted. Returns the
/// summaries that it removed.
pub fn erase_around(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<Vec<CoveringSummary>> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let summaries = delete_derived(db, host, session_id, seqs)?;
    erase_of_events(db, session_id, seqs)?;
    let turns = last_turns::overwrite_over(db, session_id)?;
    db.count(|erased| erased.turns += turns);
    Ok(summaries)
}
