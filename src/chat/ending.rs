//! The end of a turn in the log.

use super::store::delete_turn;
use super::turn::Turn;
use crate::base::database::atomically;
use crate::base::error::{Code, Error, Result};
use crate::log::append::{Parent, append};
use crate::memory::Memory;
use crate::models::TokenUsage;
use crate::store::usage::{UsageIncrease, count_usage};

/// Writes the assistant's events, the usage and the end of the turn in one transaction.
/// If the log has no place for the answer any more, the turn ends without it.
pub fn write(memory: &Memory<'_>, turn: &Turn, is_cancelled: bool) -> Result<()> {
    let events = turn.events()?;
    let outcome = atomically(memory.db, || {
        if !events.is_empty() {
            let parent = match &turn.parent_id {
                Some(id) => Parent::After(id.clone()),
                None => Parent::Root,
            };
            append(
                memory.db,
                memory.host,
                &turn.session_id,
                &events,
                &parent,
                None,
            )?;
        }
        if turn.usage != TokenUsage::default() {
            let more = UsageIncrease {
                input_tokens: turn.usage.input_tokens,
                output_tokens: turn.usage.output_tokens,
                ..UsageIncrease::default()
            };
            count_usage(memory.db, memory.host, &turn.session_id, &more)?;
        }
        delete_turn(memory.db, &turn.session_id)
    });
    match outcome {
        Err(error) if matches!(error.code, Code::MessageNotFound | Code::SessionNotFound) => {
            delete_turn(memory.db, &turn.session_id)?;
            // Whoever cancelled the turn knows why it ended. Its usage is lost along
            // with its answer.
            if is_cancelled {
                return Ok(());
            }
            Err(gone())
        }
        outcome => outcome,
    }
}

pub fn gone() -> Error {
    Error::new(
        Code::MessageNotFound,
        "The message that was to be answered was deleted while it was being answered.",
    )
}
