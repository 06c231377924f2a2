//! Overlays that a caller adds.

use base::database::{Database, SqlText, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use conversation::log::tip::get_tip;
use conversation::messages::delete::record_boundaries;
use conversation::messages::derived::record_overlay;
use conversation::messages::run::{get_run_event, load_run_around};
use conversation::messages::tree::leaf::get_seq;
use conversation::messages::tree::overlay_writes::{self, NewOverlay};
use conversation::messages::tree::overlays::{self, EventRange, MAX_SUMMARY_BYTES};
use conversation::messages::tree::path::is_path_between;

/// Hides the events from `from_id` to `to_id` behind a summary. If an end lies inside a run
/// of assistant and tool events, it is moved to the end of the run, so that no call is
/// separated from its result.
pub fn add_compaction(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    summary: &str,
    from_id: &Id,
    to_id: &Id,
) -> Result<SqlText> {
    if summary.trim().is_empty() {
        return Err(Error::invalid("summary", "`summary` must not be empty."));
    }
    if summary.len() > MAX_SUMMARY_BYTES {
        let error = Error::payload_too_large("`summary`", MAX_SUMMARY_BYTES, summary.len());
        return Err(error.with_field("summary"));
    }
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let from_seq = get_seq(db, session_id, "fromId", from_id)?;
        let to_seq = get_seq(db, session_id, "toId", to_id)?;
        if from_seq > to_seq || !is_path_between(db, session_id, from_seq, to_seq)? {
            return Err(Error::invalid(
                "toId",
                "`fromId` and `toId` must be on one path, with `fromId` before `toId`. `getHistory` with \
                 `leafId` shows a path.",
            ));
        }
        let range = align(db, session_id, from_seq, to_seq)?;
        let new = NewOverlay {
            range,
            from_id: &get_run_event(db, session_id, range.from_seq)?.id,
            to_id: &get_run_event(db, session_id, range.to_seq)?.id,
            summary,
            tokens_before: None,
            tokens_after: None,
        };
        let added = overlay_writes::insert(db, host, session_id, &new, None)?;
        record_overlay(db, host, session_id, tip.last_seq(), &added.id)?;
        record_boundaries(db, host, session_id, tip.last_seq(), &added.changed)?;
        overlays::get_json(db, session_id, &added.id)
    })
}

/// The range from the start of the first message to the end of the last one.
fn align(db: &dyn Database, session_id: &Id, from_seq: i64, to_seq: i64) -> Result<EventRange> {
    let first = load_run_around(db, session_id, from_seq)?;
    let first = first.events.first();
    let first = first.ok_or_else(|| Error::storage("a message without events"))?;
    Ok(EventRange {
        from_seq: first.seq,
        to_seq: load_run_around(db, session_id, to_seq)?.last_seq(),
        above_seq: first.parent_seq,
    })
}
