//! Messages that arrive while a turn of their session is running: they are refused, queued,
//! or replace the turn.

use std::rc::Rc;

use crate::frames::outgoing::{FrameHeader, TurnOutcome, render_failed};
use crate::request::known_messages::load_known;
use crate::request::plan::NamedMessage;
use crate::request::queued_requests::{self, QueuedRequest};
use crate::request::{ChatRequest, ClientMessage, Trigger};
use crate::run::agent::{Agent, CANCEL_RULE};
use crate::run::answer_log::AnswerLog;
use crate::run::planning::plan_request;
use crate::run::recover;
use crate::run::request_writer::{RequestWriter, is_temporary, turn_in_progress};
use crate::run::running_turns::AwaitedTurn;
use crate::run::watchers::broadcast_list;
use crate::run::work::TurnWork;
use crate::turn::store::has_turn;
use access::permit;
use base::database::atomically;
use base::error::{Error, Result};
use base::ids::Id;
use conversation::log::queued::{self, QueuePosition};
use conversation::log::sessions::session_exists;
use conversation::session::meter::Meter;
use store::config::{Config, load_config};
use store::when_busy::WhenBusy;

/// Queues a request if a turn of the session is running, or if other requests are already
/// queued. `None`: the request's turn may start.
pub fn enqueue(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &ChatRequest,
    turn_id: &str,
) -> Result<Option<Rc<AwaitedTurn>>> {
    let is_busy = agent.turns.find(session_id).is_some() || has_turn(agent.db, session_id)?;
    if !is_busy && queued_requests::find_first(agent.db, session_id)?.is_none() {
        return Ok(None);
    }
    let when_busy = when_busy(agent, session_id, request)?;
    if when_busy == WhenBusy::Reject {
        return Err(turn_in_progress());
    }
    let messages = find_queueable_messages(agent, session_id, request)?;
    let known = queued_requests::load_queue(agent.db, session_id)?;
    let waits = |queued: &QueuePosition, id: &Id| {
        queued.message_ids.iter().any(|known| known == id.as_str())
    };
    let new: Vec<_> = messages
        .iter()
        .filter(|message| {
            let id = message.id.as_ref();
            !id.is_some_and(|id| known.iter().any(|queued| waits(queued, id)))
        })
        .copied()
        .collect();
    if new.is_empty() {
        // The request was repeated: it keeps its position in the queue.
        let last = messages.last().and_then(|message| message.id.as_ref());
        let queued = last.and_then(|id| known.iter().find(|queued| waits(queued, id)));
        let queued = queued.ok_or_else(turn_in_progress)?;
        return Ok(Some(agent.turns.wait_for(session_id, &queued.turn_id)));
    }
    let replaces = when_busy == WhenBusy::Replace;
    if replaces && is_busy && agent.turns.find(session_id).is_none() {
        check_limits(agent)?;
        // The turn was interrupted and not resumed yet. It is ended now, so that this
        // request's turn may start immediately.
        recover::stop_interrupted(agent.turn_context(), session_id, &|_| true)?;
        agent.call_back();
        return Ok(None);
    }
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let waiting = QueuedRequest::new(request, &new, agent.caller.principal());
    atomically(agent.db, || {
        // The request counts when it arrives, so that it isn't refused after waiting in the
        // queue.
        meter(agent, &config).admit(true)?;
        queued_requests::insert(agent.db, session_id, turn_id, &waiting, replaces)
    })?;
    if replaces {
        agent.turns.cancel(session_id);
    }
    Ok(Some(agent.turns.wait_for(session_id, turn_id)))
}

/// The limits for a turn of this caller.
fn meter<'a>(agent: &Agent<'a>, config: &'a Config) -> Meter<'a> {
    Meter {
        db: agent.db,
        host: agent.host,
        config,
        token: agent.caller.limits(),
        budget: None,
    }
}

/// How to handle a request that arrives while a turn is running. To replace the turn, a
/// caller must be allowed to stop it.
fn when_busy(agent: &Agent<'_>, session_id: &Id, request: &ChatRequest) -> Result<WhenBusy> {
    let may_stop = permit(agent.caller, CANCEL_RULE, Some(session_id));
    match request.when_busy {
        Some(WhenBusy::Replace) => may_stop
            .map(|()| WhenBusy::Replace)
            .map_err(|error| error.with_field("whenBusy")),
        Some(when_busy) => Ok(when_busy),
        None => default_when_busy(agent, session_id),
    }
}

/// The agent's own setting for such a request. The caller did not choose this setting. So a
/// caller who may not stop the turn is refused as if the agent were set to refuse.
pub fn default_when_busy(agent: &Agent<'_>, session_id: &Id) -> Result<WhenBusy> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let may_stop = permit(agent.caller, CANCEL_RULE, Some(session_id));
    match config.when_busy {
        WhenBusy::Replace if may_stop.is_err() => Ok(WhenBusy::Reject),
        when_busy => Ok(when_busy),
    }
}

/// Refuses a caller whose limits allow no turn now, so that such a request neither stops a
/// turn nor is queued.
pub fn check_limits(agent: &Agent<'_>) -> Result<()> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    meter(agent, &config).check_turn()
}

/// The messages of a request that may be queued: new user messages. A request for anything
/// else, such as another answer or a tool's output, can't be queued, because the running
/// turn may change the messages that it names.
fn find_queueable_messages<'a>(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &'a ChatRequest,
) -> Result<Vec<&'a ClientMessage>> {
    let known = if session_exists(agent.db, session_id)? {
        load_known(agent.db, session_id, request)?
    } else {
        Vec::new()
    };
    let mut stored: Vec<NamedMessage> = known.iter().map(|known| known.stored.clone()).collect();
    let answers = AnswerLog {
        db: agent.db,
        host: agent.host,
        session_id,
        authority: &agent.caller.authority(),
    };
    let planned = plan_request(&answers, &mut stored, &known, request)?;
    let is_message_alone = matches!(request.trigger, Trigger::Submit { .. })
        && planned.edited.is_none()
        && planned.answered_messages().next().is_none();
    if is_message_alone && !planned.new_user_messages.is_empty() {
        Ok(planned.new_user_messages)
    } else {
        Err(turn_in_progress())
    }
}

/// Writes the oldest queued message into the log and starts its turn. A request that the
/// log can't accept is dropped, and the caller that waits for it gets the reason.
pub fn start_queued(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    while let Some(queued) = queued_requests::find_first(agent.db, session_id)? {
        match accept_queued(agent, session_id, &queued) {
            Ok(None) => {}
            Ok(work) => return Ok(work),
            Err(error) if is_temporary(error.code) => return Err(error),
            Err(error) => {
                queued::forget(agent.db, session_id, &queued)?;
                let frame = render_failed(&queued.turn_id, &error.message, false);
                agent.audience.send(session_id, &frame, None);
                agent
                    .turns
                    .abandon(session_id, &queued.turn_id, Some(&error));
            }
        }
    }
    Ok(None)
}

fn accept_queued(
    agent: &Agent<'_>,
    session_id: &Id,
    queued: &QueuePosition,
) -> Result<Option<TurnWork>> {
    let waiting = queued_requests::find_request(agent.db, session_id, queued)?
        .ok_or_else(|| Error::corrupt_row(&queued.turn_id, "waiting message"))?;
    let principal = waiting.principal();
    let request = waiting.into_request()?;
    let reservation = agent.turns.reserve(request.retained_bytes())?;
    let writer = RequestWriter::of(agent, session_id, principal);
    let started = atomically(agent.db, || {
        queued::forget(agent.db, session_id, queued)?;
        writer.write_waiting(&request, &queued.turn_id)
    })?;
    // The turn is stored now: nothing below may prevent it from starting.
    let work = started.turn.map(|turn| agent.begin(turn, reservation));
    if started.has_changed {
        broadcast_list(agent, session_id, Some(&queued.turn_id));
    }
    Ok(work)
}

/// Withdraws the queued message of a turn. `false`: there is no such message.
pub fn withdraw(
    agent: &Agent<'_>,
    session_id: &Id,
    is_eligible: impl Fn(&QueuePosition) -> bool,
) -> Result<bool> {
    let line = queued_requests::load_queue(agent.db, session_id)?;
    let Some(queued) = line.iter().find(|queued| is_eligible(queued)) else {
        return Ok(false);
    };
    queued::forget(agent.db, session_id, queued)?;
    agent.turns.abandon(session_id, &queued.turn_id, None);
    let header = FrameHeader {
        id: &queued.turn_id,
        is_continuation: false,
        is_replay: false,
    };
    let frame = header.render_done(TurnOutcome::Aborted);
    agent.audience.send(session_id, &frame, None);
    Ok(true)
}
