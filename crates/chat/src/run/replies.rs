//! Writes clients' answers to tool calls, which may make a turn go on.

use crate::run::agent::Agent;
use crate::run::early::{EarlyAnswer, find_oldest, forget};
use crate::run::request_writer::{RequestWriter, is_for_later};
use crate::run::running_turns::ClientReply;
use crate::run::watchers::show_updated;
use crate::run::work::TurnWork;
use base::database::atomically;
use base::error::Result;
use base::ids::Id;

/// Takes the early answers, which came while a turn ran, in their order, until one makes
/// a turn go on. The rest wait for the end of that turn. An answer that no call asks for
/// any more, or that the log can't take, is dropped.
pub fn take_early_answers(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    while let Some(EarlyAnswer { number, reply }) = find_oldest(agent.db, session_id)? {
        let Some(reply) = reply else {
            forget(agent.db, session_id, number)?;
            continue;
        };
        match take_reply(agent, session_id, reply, Some(number)) {
            Ok(None) => {}
            Ok(work) => return Ok(work),
            Err(error) if is_for_later(error.code) => return Err(error),
            Err(_) => forget(agent.db, session_id, number)?,
        }
    }
    Ok(None)
}

/// Writes an answer to a tool call; returns the turn that goes on, if one does.
pub fn take_answer(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
) -> Result<Option<TurnWork>> {
    take_reply(agent, session_id, given, None)
}

/// `early`: the number of the early answer that holds this reply until now.
fn take_reply(
    agent: &Agent<'_>,
    session_id: &Id,
    given: ClientReply,
    early: Option<i64>,
) -> Result<Option<TurnWork>> {
    let reservation = agent.turns.reserve(0)?;
    let writer = RequestWriter::of(agent, session_id, given.asker());
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
    // The turn is stored now: nothing below may keep it from beginning.
    let work = started.turn.map(|turn| agent.begin(turn, reservation));
    show_updated(agent, session_id, &started.message_id);
    Ok(work)
}
