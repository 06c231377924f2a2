//! The calls of a stored message: which wait for the client or the user, which
//! have their results, and what was asked with each.
//!
//! The rule it protects: a call waits only where a turn of this very session left
//! it open. What a file or a fork brought says that calls wait, too, and is data:
//! else whoever writes a file would write what tools are called with, and a call
//! that was approved once would be made in the session and in its fork.

use std::collections::HashSet;

use super::plan::{AwaitedAnswer, OpenCall};
use crate::base::database::Database;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::log::row::get_event_text;
use crate::log::tool::{CheckedTool, ToolCall};
use crate::messages::run::RunEvent;

/// Those of a message's events that turns of this session wrote: `copied_seq` is
/// that of the newest event that came with a file or a fork.
pub fn own_rows(rows: &[RunEvent], copied_seq: i64) -> impl Iterator<Item = &RunEvent> {
    rows.iter()
        .filter(move |row| row.seq > copied_seq && row.is_run_member)
}

/// The calls of a message that wait for the client or the user.
pub fn open_calls(rows: &[RunEvent], copied_seq: i64) -> Result<Vec<OpenCall>> {
    let answered = answered_calls(rows, copied_seq);
    let mut open = Vec::new();
    for row in own_rows(rows, copied_seq).filter(|row| row.has_note()) {
        let note = row.note()?;
        let outputs = note
            .client_calls
            .iter()
            .map(|id| (id, AwaitedAnswer::Output));
        let approvals = note
            .approvals
            .iter()
            .filter(|(id, _)| !note.decided.contains_key(*id))
            .map(|(id, approval_id)| {
                let approval_id = approval_id.clone();
                (id, AwaitedAnswer::Approval { approval_id })
            });
        open.extend(outputs.chain(approvals).filter_map(|(id, awaits)| {
            (!answered.contains(id.as_str())).then(|| OpenCall {
                tool_call_id: id.clone(),
                awaits,
            })
        }));
    }
    Ok(open)
}

/// The calls that have their results, in events of this session's own.
pub fn answered_calls(rows: &[RunEvent], copied_seq: i64) -> HashSet<&str> {
    own_rows(rows, copied_seq)
        .filter_map(|row| row.answered.as_deref())
        .collect()
}

/// The call that waits for the client's output under this id.
pub fn find_client_call(
    db: &dyn Database,
    session_id: &Id,
    rows: &[RunEvent],
    copied_seq: i64,
    call_id: &str,
) -> Result<ToolCall> {
    for row in own_rows(rows, copied_seq).filter(|row| row.has_note()) {
        if row.note()?.client_calls.iter().any(|id| id == call_id) {
            return call_of(db, session_id, row, call_id);
        }
    }
    Err(missing())
}

/// A call of this event, which notes it. Never another event's of the same id:
/// somebody may have put one beside it. Only this event is read.
pub fn call_of(
    db: &dyn Database,
    session_id: &Id,
    row: &RunEvent,
    call_id: &str,
) -> Result<ToolCall> {
    let Some(tool) = get_event_text(db, session_id, row.seq)?.tool else {
        return Err(missing());
    };
    let called: CheckedTool =
        serde_json::from_str(&tool).map_err(|_| Error::corrupt_row(&row.id, "tool call"))?;
    let mut calls = called.tool_calls.into_iter().flatten();
    calls
        .find(|call| call.id.as_str() == call_id)
        .ok_or_else(missing)
}

fn missing() -> Error {
    Error::storage("a call that was noted is not in its event")
}
