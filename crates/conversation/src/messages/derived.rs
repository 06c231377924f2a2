//! Removes what was derived from events whose text is erased: the summaries that covered
//! the events, and the turn reports that contain their messages. Runs in the erasure's
//! transaction.

use std::collections::BTreeSet;

use super::delete::record_boundaries;
use super::runs::{RunCache, RunPosition};
use super::tree::overlay_writes;
use super::tree::overlays::{EventRange, MAX_OVERLAYS};
use super::tree::path::{Branches, PathSegment, is_on_path};
use crate::log::tip::get_tip;
use crate::session::changes::{self, ChangeType};
use base::columns::{load, load_values};
use base::database::{Database, SqlValue, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json;
use base::row;
use store::callbacks;

/// Deletes an overlay, so that the events it hid are visible again. `false`: there is no
/// such overlay.
pub fn delete_overlay(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    id: &Id,
) -> Result<bool> {
    atomically(db, || {
        let last_seq = get_tip(db, session_id)?.last_seq();
        let Some(changed) = overlay_writes::delete(db, session_id, id)? else {
            return Ok(false);
        };
        record_overlay(db, host, session_id, last_seq, id)?;
        record_boundaries(db, host, session_id, last_seq, &changed)?;
        Ok(true)
    })
}

/// Records in the change feed that an overlay was added or deleted.
pub fn record_overlay(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    id: &Id,
) -> Result<()> {
    let changed = [Some(id.as_str())];
    let kind = ChangeType::Compaction;
    changes::record(db, host, session_id, last_seq, kind, &changed)
}

/// Removes what was derived from these events. Reports are deleted first, because deleting
/// a summary merges messages that it split. The summary's other events become visible again
/// and may be compacted again. Returns the summaries.
pub fn delete_derived(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<Vec<CoveringSummary>> {
    erase_reports(db, session_id, seqs)?;
    let summaries = find_summaries(db, session_id, seqs)?;
    for summary in &summaries {
        delete_overlay(db, host, session_id, &summary.id)?;
    }
    Ok(summaries)
}

row! {
    /// A summary that covers some events.
    pub struct CoveringSummary {
        range: EventRange = EventRange::COLUMNS,
        pub id: Id = "id",
        pub created_at: i64 = "created_at",
    }
}

/// The summaries that cover one of these events. A `seq` between the ends of a summary
/// isn't sufficient: the event may be on another branch.
pub fn find_summaries(
    db: &dyn Database,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<Vec<CoveringSummary>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
            AND EXISTS (SELECT 1
                          FROM json_each(?2)
                         WHERE value BETWEEN from_seq AND to_seq)
          LIMIT {MAX_OVERLAYS}",
        CoveringSummary::COLUMNS
    );
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(seqs)?),
    ];
    let mut found: Vec<CoveringSummary> = load(db, &sql, &params)?;
    if found.is_empty() {
        return Ok(found);
    }
    let branches = Branches::load(db, session_id)?;
    found.retain(|summary| {
        let EventRange {
            from_seq, to_seq, ..
        } = summary.range;
        let path: Vec<PathSegment> = branches.path_up(to_seq).collect();
        let mut within = seqs.range(from_seq..=to_seq);
        within.any(|seq| is_on_path(&path, *seq))
    });
    Ok(found)
}

/// Deletes the turn reports (`onTurnEnd`) that contain messages of these events, so that an
/// erased text is not sent to anyone.
fn erase_reports(db: &dyn Database, session_id: &Id, seqs: &BTreeSet<i64>) -> Result<()> {
    if !callbacks::has_session_any(db, session_id)? {
        return Ok(());
    }
    let mut runs = RunCache::of(db, session_id);
    let mut messages = BTreeSet::new();
    for seq in seqs {
        if let RunPosition::Run(start) = runs.find(*seq)? {
            messages.insert(start.seq);
        }
    }
    // An event outside any run is a message by itself.
    messages.extend(seqs);
    let sql = "SELECT e.id
                 FROM cf_agents_events AS e
                WHERE e.session_id = ?1
                  AND e.seq IN (SELECT value FROM json_each(?2))";
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(&messages)?),
    ];
    let ids: Vec<String> = load_values(db, sql, &params)?;
    callbacks::delete_of_messages(db, session_id, &ids)
}
