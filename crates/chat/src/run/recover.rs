//! Recovers turns that were interrupted by the object's eviction. Each recovery is counted
//! before it is attempted. A turn that can't be continued is closed.

use std::rc::Rc;

use crate::run::context::TurnContext;
use crate::run::ending::{store_unreadable, write};
use crate::run::replay::{replay, replay_events};
use crate::run::running_turns::RunningTurn;
use crate::run::whole_outputs;
use crate::stream::chunk_writer::ChunkWriter;
use crate::turn::Turn;
use crate::turn::report::TurnReport;
use crate::turn::store::{count_recovery, find_turn};
use base::action::Action;
use base::database::atomically;
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::log::append::{Parent, append};
use conversation::log::event::NewEvent;
use conversation::session::last_turns::{end_open_turn, find_open_turn};
use conversation::session::spending::TurnSpending;

/// How often a turn is recovered before it is closed with an error.
pub const MAX_RECOVERIES: i64 = 2;

/// Recovers an interrupted turn. [`go_on`] drives the result, once the incremented count is
/// durable. `None`: there is no such turn.
pub fn resume_turn(context: TurnContext<'_>, session_id: &Id) -> Result<Option<RecoveredTurn>> {
    if context.turns.find(session_id).is_some() {
        return Ok(None);
    }
    // Memory is reserved before the recovery is counted, because waiting for memory is not
    // a recovery.
    let reservation = context.turns.reserve(0)?;
    let Some(recoveries) = count_recovery(context.memory.db, session_id)? else {
        return Ok(None);
    };
    let found = match find_turn(context.memory.db, session_id) {
        Err(error) if error.code == Code::CorruptRow || recoveries > MAX_RECOVERIES => {
            close_unreadable(context, session_id, &error)?;
            return Err(error);
        }
        found => found?,
    };
    let Some(mut turn) = found else {
        return Ok(None);
    };
    turn.resume();
    turn.record.recoveries = recoveries;
    let running = context.turns.begin(&turn, reservation, true);
    running.set_retained_bytes(turn.stored_bytes);
    let (writer, chunks) = replay(&turn, &whole_outputs::load(context.memory.db, &turn)?);
    for chunk in &chunks {
        running.push(chunk.json().into());
    }
    for event in replay_events(&turn) {
        running.push_event(event);
    }
    Ok(Some(RecoveredTurn {
        running,
        turn,
        recoveries,
        writer,
    }))
}

/// Closes a turn that another build of this Worker stored in a format that this build can't
/// read. Otherwise it would block its session forever.
fn close_unreadable(context: TurnContext<'_>, session_id: &Id, error: &Error) -> Result<()> {
    let (db, host) = (context.memory.db, context.memory.host);
    atomically(db, || {
        let notice = NewEvent {
            content: Some("This answer was interrupted and could not be finished.".to_owned()),
            ..NewEvent::new(Action::AgentMessage)
        };
        let notice = append(db, host, session_id, &[notice], &Parent::Leaf, None)?;
        match find_open_turn(db, session_id)? {
            Some(open) => {
                let seq = notice.events.first().map_or(0, |notice| notice.seq);
                let turn_id = open.turn_id.as_deref().unwrap_or_default();
                store_unreadable(db, session_id, turn_id, (host.now_ms(), seq), error)?;
                let spent = TurnSpending {
                    has_failed: true,
                    ..TurnSpending::default()
                };
                end_open_turn(db, host, session_id, &open, spent)
            }
            None => Ok(()),
        }
    })
}

/// Stops an interrupted turn that is not recovered yet. `false`: there is no such turn, or
/// `is_eligible` rejects it.
pub fn stop_interrupted(
    context: TurnContext<'_>,
    session_id: &Id,
    is_eligible: &dyn Fn(&Turn) -> bool,
) -> Result<bool> {
    if context.turns.find(session_id).is_some() {
        return Ok(false);
    }
    let found = find_turn(context.memory.db, session_id)?;
    let Some(mut turn) = found.filter(is_eligible) else {
        return Ok(false);
    };
    turn.resume();
    turn.cancel();
    let report = TurnReport::of_cancelled(&turn);
    if write(&context.memory, &turn, &report, true)? {
        context.memory.new_callbacks.mark();
    }
    Ok(true)
}

pub struct RecoveredTurn {
    pub running: Rc<RunningTurn>,
    pub(super) turn: Turn,
    pub(super) recoveries: i64,
    pub(super) writer: ChunkWriter,
}
