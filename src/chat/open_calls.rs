//! The calls of a stored message: which of them wait for the client or the user, which
//! have results, and their arguments.
//!
//! The rule: a call waits only if a turn of this very session left it open. A file or a
//! fork may also mark calls as waiting, but these marks are only data. Otherwise the
//! author of a file could choose what tools are called with, and a call that was
//! approved once would be made both in the session and in its fork.

use std::collections::HashSet;

use super::plan::{AwaitedAnswer, OpenCall};
use crate::base::database::Database;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json;
use crate::log::row::get_event_text;
use crate::log::tool::{CheckedTool, ToolCall};
use crate::messages::run::RunEvent;

/// The events of a message that turns of this session wrote. `copied_seq` is that of
/// the newest event that came with a file or a fork.
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

/// The calls that have results in events that this session wrote.
pub fn answered_calls(rows: &[RunEvent], copied_seq: i64) -> HashSet<&str> {
    own_rows(rows, copied_seq)
        .filter_map(|row| row.answered.as_deref())
        .collect()
}

/// The call with this id that waits for the client's output.
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

/// The call with this id in this event, whose note names it. Only this event is read,
/// since another event may hold a call of the same id.
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
        json::decode(&tool).map_err(|_| Error::corrupt_row(&row.id, "tool call"))?;
    let mut calls = called.tool_calls.into_iter().flatten();
    calls
        .find(|call| call.id.as_str() == call_id)
        .ok_or_else(missing)
}

fn missing() -> Error {
    Error::storage("a call that was noted is not in its event")
}
