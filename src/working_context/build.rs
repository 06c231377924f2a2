//! Building the context of a turn from the log.

use serde::Serialize;

use super::message::{ContextMessage, Role, from_row};
use super::truncate::shorten_older;
use super::window::{Placed, close_pairs};
use crate::database::Database;
use crate::error::Result;
use crate::ids::Id;
use crate::log::load::MAX_READ_BYTES;
use crate::messages::history::walk_rows;
use crate::tokens;
use crate::tree::path::Step;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkingContext {
    /// The agent's, then those given.
    pub system_instructions: Vec<String>,
    /// Oldest first; no tool call without its result, no result without its call.
    pub messages: Vec<ContextMessage>,
    pub leaf_id: Option<String>,
    pub tokens_estimate: i64,
}

/// The context that the newest `limit` events up to `leaf_seq` make.
pub fn build_working_context(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: Option<i64>,
    limit: usize,
    system_instructions: Vec<String>,
) -> Result<WorkingContext> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    if let Some(leaf_seq) = leaf_seq {
        walk_rows(db, session_id, leaf_seq, limit as i64, &mut |row| {
            bytes += row.body_bytes();
            if bytes > MAX_READ_BYTES && !rows.is_empty() {
                return Ok(Step::Stop);
            }
            rows.push(row);
            Ok(if rows.len() >= limit {
                Step::Stop
            } else {
                Step::On
            })
        })?;
    }
    let leaf_id = rows.first().map(|row| row.id.clone());
    let mut placed = Vec::new();
    for row in rows.iter().rev() {
        let seq = row.seq;
        placed.extend(
            from_row(row)?
                .into_iter()
                .map(|message| Placed { seq, message }),
        );
    }
    let mut placed = close_pairs(placed);
    shorten_older(&mut placed);
    let messages: Vec<ContextMessage> = placed.into_iter().map(|placed| placed.message).collect();
    let tokens_estimate = messages.iter().map(message_tokens).sum::<i64>()
        + system_instructions
            .iter()
            .map(|text| tokens::estimate(text))
            .sum::<i64>();
    Ok(WorkingContext {
        system_instructions,
        messages,
        leaf_id,
        tokens_estimate,
    })
}

fn message_tokens(message: &ContextMessage) -> i64 {
    let calls = message.calls().iter().map(|call| {
        tokens::estimate(call.name.as_str()) + tokens::estimate(call.arguments.as_str())
    });
    let content = match message.role {
        Role::Tool => tokens::estimate_output(&message.content),
        Role::User | Role::Assistant | Role::System => tokens::estimate(&message.content),
    };
    content + calls.sum::<i64>()
}
