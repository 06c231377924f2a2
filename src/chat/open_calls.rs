//! The calls of a stored message: which wait for the client or the user, which
//! have their results, and what was asked with each.

use std::collections::HashSet;

use super::plan::{Awaits, OpenCall};
use crate::error::{Error, Result};
use crate::log::event::ToolCall;
use crate::messages::view::EventRow;

/// The calls of a message that wait for the client or the user.
pub fn open_calls(rows: &[EventRow]) -> Result<Vec<OpenCall>> {
    let answered = answered_calls(rows)?;
    let mut open = Vec::new();
    for row in rows.iter().filter(|row| row.is_run_member()) {
        let note = row.note()?;
        let outputs = note.client_calls.iter().map(|id| (id, Awaits::Output));
        let approvals = note
            .approvals
            .iter()
            .filter(|(id, _)| !note.decided.contains_key(*id))
            .map(|(id, approval_id)| {
                let approval_id = approval_id.clone();
                (id, Awaits::Approval { approval_id })
            });
        open.extend(outputs.chain(approvals).filter_map(|(id, awaits)| {
            (!answered.contains(id)).then(|| OpenCall {
                tool_call_id: id.clone(),
                awaits,
            })
        }));
    }
    Ok(open)
}

pub fn answered_calls(rows: &[EventRow]) -> Result<HashSet<String>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answered {
        tool_call_id: Option<String>,
    }
    let mut answered = HashSet::new();
    for row in rows.iter().filter(|row| row.action == "tool_result") {
        let tool = row.tool.as_deref().unwrap_or("{}");
        let tool: Answered =
            serde_json::from_str(tool).map_err(|_| Error::corrupt_row(&row.id, "tool call"))?;
        answered.extend(tool.tool_call_id);
    }
    Ok(answered)
}

pub fn find_call(rows: &[EventRow], call_id: &str) -> Result<ToolCall> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Called {
        tool_calls: Option<Vec<ToolCall>>,
    }
    for row in rows {
        let Some(tool) = row.tool.as_deref() else {
            continue;
        };
        let called: Called =
            serde_json::from_str(tool).map_err(|_| Error::corrupt_row(&row.id, "tool call"))?;
        let mut calls = called.tool_calls.into_iter().flatten();
        if let Some(call) = calls.find(|call| call.id.as_str() == call_id) {
            return Ok(call);
        }
    }
    Err(Error::storage(
        "a call that was noted is not in its message",
    ))
}
