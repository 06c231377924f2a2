//! The tool calls of a stored message: which of them wait for the client or the user, which
//! have results, and their arguments.
//!
//! Invariant: a call is open only if a turn of this session left it open. An import or a
//! fork may also mark calls as open, but these marks are only data. Otherwise the author of
//! a file could choose the arguments of tools, and a call that was approved once would be
//! made twice, in the session and in its fork.

use std::collections::HashMap;

use crate::request::plan::{AwaitedAnswer, OpenCall};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use conversation::log::row::get_event_text;
use conversation::log::tool::{CheckedTool, ToolCall};
use conversation::messages::run::RunEvent;

/// The events of a message that turns of this session wrote. `copied_seq` is the newest
/// event that was imported or copied by a fork.
pub fn own_rows(rows: &[RunEvent], copied_seq: i64) -> impl DoubleEndedIterator<Item = &RunEvent> {
    rows.iter()
        .filter(move |row| row.seq > copied_seq && row.is_run_member)
}

/// The calls of a message that wait for the client or the user. `continuations` are the events
/// that continue the split message's run in other messages.
pub fn open_calls(
    rows: &[RunEvent],
    continuations: &[RunEvent],
    copied_seq: i64,
) -> Result<Vec<OpenCall>> {
    let answered = AnsweredCalls::of(rows, continuations, copied_seq);
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
        let questions = note
            .questions
            .iter()
            .filter(|(_, call)| call.awaits_answers())
            .map(|(id, _)| (id, AwaitedAnswer::Input));
        open.extend(
            outputs
                .chain(approvals)
                .chain(questions)
                .filter_map(|(id, awaits)| {
                    (!answered.has(row, id)).then(|| OpenCall {
                        tool_call_id: id.clone(),
                        awaits,
                    })
                }),
        );
    }
    Ok(open)
}

/// The calls with results in events that this session wrote: the newest result's event by
/// call id. A result is always below its call. If several calls share an id, a later one is
/// open only if the earlier ones have results.
pub struct AnsweredCalls<'r> {
    newest: HashMap<&'r str, i64>,
}

impl<'r> AnsweredCalls<'r> {
    /// `continuations` are the events that continue the run of `rows` in other messages.
    pub fn of(rows: &'r [RunEvent], continuations: &'r [RunEvent], copied_seq: i64) -> Self {
        let mut newest = HashMap::new();
        for row in own_rows(rows, copied_seq).chain(own_rows(continuations, copied_seq)) {
            if let Some(call_id) = &row.answered {
                let result = newest.entry(call_id.as_str()).or_insert(row.seq);
                *result = row.seq.max(*result);
            }
        }
        Self { newest }
    }

    /// Whether this call of the event has a result.
    pub fn has(&self, row: &RunEvent, call_id: &str) -> bool {
        let result = self.newest.get(call_id);
        result.is_some_and(|result| *result > row.seq)
    }
}

/// The newest call with this id that waits for the client's output.
pub fn find_client_call(
    db: &dyn Database,
    session_id: &Id,
    rows: &[RunEvent],
    copied_seq: i64,
    call_id: &str,
) -> Result<ToolCall> {
    for row in own_rows(rows, copied_seq)
        .rev()
        .filter(|row| row.has_note())
    {
        if row.note()?.client_calls.iter().any(|id| id == call_id) {
            return call_of(db, session_id, row, call_id);
        }
    }
    Err(missing())
}

/// The call with this id in the event whose note names it. Only this event is read, because
/// another event may contain a call with the same id.
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
