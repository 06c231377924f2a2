//! Runs a turn to its end, and then the work that follows the turn in its session.

use std::rc::Rc;

use crate::request::queued_requests;
use crate::run::agent::Agent;
use crate::run::driver;
use crate::run::queue::start_queued;
use crate::run::replies::accept_out_of_band_results;
use crate::run::watchers::broadcast_list;
use crate::run::work::TurnWork;
use base::error::Result;
use base::ids::Id;
use base::owner::work_for;
use base::trace::run_in;

/// Runs a turn to its end; returns the session that grew.
pub async fn run(agent: &Agent<'_>, work: TurnWork) -> Id {
    let mut work = work;
    loop {
        let running = Rc::clone(work.running());
        work_for(running.session_id.as_str(), run_one(agent, work)).await;
        match find_next_work(agent, &running.session_id) {
            Ok(Some(next)) => work = next,
            // The next check retries the work that failed.
            Ok(None) | Err(_) => return running.session_id.clone(),
        }
    }
}

/// The work after a turn: a message that replaced the turn, an out-of-band tool result that
/// continues the turn, or the next queued message.
fn find_next_work(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    let first = queued_requests::find_first(agent.db, session_id)?;
    if !first.is_some_and(|queued| queued.is_first())
        && let Some(work) = accept_out_of_band_results(agent, session_id)?
    {
        return Ok(Some(work));
    }
    start_queued(agent, session_id)
}

async fn run_one(agent: &Agent<'_>, work: TurnWork) {
    let running = Rc::clone(work.running());
    let trace = work.turn().record.find_trace().map(Rc::new);
    let driven = async {
        match work {
            TurnWork::Begin(running, turn) => {
                driver::run(agent.turn_context(), &running, *turn).await;
            }
            TurnWork::Resume(recovered) => driver::resume(agent.turn_context(), *recovered).await,
        }
    };
    run_in(trace, driven).await;
    let is_offered = agent.audience.awaits_replay(&running.session_id);
    agent.turns.retain_finished(&running, is_offered);
    agent.call_back();
    // The client that made the request has the turn, but not the messages that others wrote in the
    // meantime.
    let has_all = !running.is_continuation && !running.was_broadcast();
    let except = has_all.then_some(running.request_id.as_str());
    broadcast_list(agent, &running.session_id, except);
}
