//! Stores clients' answers to tool calls, which may resume a turn.

use crate::run::agent::Agent;
use crate::run::out_of_band::{OutOfBandResult, find_oldest, forget};
use crate::run::request_writer::{RequestWriter, is_temporary};
use crate::run::running_turns::ClientReply;
use crate::run::watchers::{broadcast_list, broadcast_message};
use crate::run::work::TurnWork;
use base::database::atomically;
use base::error::{Code, Result};
use base::ids::Id;

/// Processes out-of-band tool results, which arrived while a turn ran, in their order, until one
/// resumes a turn. The rest wait for the end of that turn. A result that no call waits for any
/// more, or that the log can't store, is dropped.
pub fn accept_out_of_band_results(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    while let Some(OutOfBandResult { number, reply }) = find_oldest(agent.db, session_id)? {
        let Some(reply) = reply else {
            forget(agent.db, session_id, number)?;
            continue;
        };
        match accept_reply(agent, session_id, reply, Some(number)) {
            Ok(None) => {}
            Ok(work) => return Ok(work),
            Err(error) if is_temporary(error.code) => return Err(error),
            Err(_) => {
                forget(agent.db, session_id, number)?;
                // The page shows the answer as the call's output.
                broadcast_list(agent, session_id, None);
            }
        }
    }
    Ok(None)
}

/// Stores an answer to a tool call. Returns the turn that it resumes, if any.
pub fn accept_answer(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
) -> Result<Option<TurnWork>> {
    match accept_reply(agent, session_id, given, None) {
        // The answer doesn't fit its question. Pages show it as the call's output; in the stored
        // messages the call still waits.
        Err(error) if matches!(error.code, Code::InvalidRequest | Code::PayloadTooLarge) => {
            broadcast_list(agent, session_id, None);
            Ok(None)
        }
        outcome => outcome,
    }
}

/// `early`: the number of the out-of-band result that contains this reply.
fn accept_reply(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
    early: Option<i64>,
) -> Result<Option<TurnWork>> {
    let reservation = agent.turns.reserve(0)?;
    let writer = RequestWriter::of(agent, session_id, given.principal());
    let turn_id = Id::mint_turn(agent.host);
    let started = atomically(agent.db, || {
        if let Some(number) = early {
            forget(agent.db, session_id, number)?;
        }
        writer.write_answer(
            given.answer,
            given.continues,
            &given.client_tools,
            turn_id.as_str(),
        )
    })?;
    let Some(started) = started else {
        return Ok(None);
    };
    // The turn is stored now: nothing below may prevent it from starting.
    let work = started.turn.map(|turn| agent.begin(turn, reservation));
    broadcast_message(agent, session_id, &started.message_id);
    Ok(work)
}
