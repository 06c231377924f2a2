//! Requests that come while another turn of their session runs: depending on the agent's
//! `whenBusy`, they are rejected, wait for the turn's end, or stop the turn.
//!
//! Nothing of a waiting request is stored: where its history continues is known only after the
//! turn's end. So it waits as long as its client does. A request whose client disconnects before is
//! dropped.

use crate::begin::{Beginning, StartedAnswer, begin};
use crate::calls::ApiHeaders;
use base::error::Result;
use base::ids::Id;
use chat::request::queued_requests::{MAX_WAITING, queue_is_full};
use chat::run::agent::Agent;
use chat::run::queue::{check_limits, default_when_busy};
use chat::run::request_writer::turn_in_progress;
use models::caller_fields::ProviderApi;
use store::when_busy::WhenBusy;

/// How many turns may precede a request: those of as many requests as may wait here, and of as many
/// messages as may wait in the session's queue.
const MAX_TURNS_BEFORE: usize = 2 * MAX_WAITING;

/// Begins a turn, as soon as the session has no other.
pub async fn begin_queued(
    agent: &Agent<'_>,
    api: ProviderApi,
    address: Option<&Id>,
    headers: &ApiHeaders,
    body: &[u8],
) -> Result<StartedAnswer> {
    let mut queued = None;
    for _ in 0..MAX_TURNS_BEFORE {
        let session_id = match begin(agent, api, address, headers, body)? {
            Beginning::Answer(started) => return Ok(started),
            Beginning::Busy(session_id) => session_id,
        };
        let when_busy = default_when_busy(agent, &session_id)?;
        // An interrupted turn that is not resumed yet has no end to wait for.
        let Some(running) = agent.turns.find(&session_id) else {
            break;
        };
        if when_busy == WhenBusy::Reject {
            break;
        }
        check_limits(agent)?;
        if queued.is_none() {
            queued = Some(agent.turns.enqueue(&session_id).ok_or_else(queue_is_full)?);
            if when_busy == WhenBusy::Replace {
                running.cancel();
            }
        }
        // The turn's own callers receive its outcome.
        drop(running.ends().await);
    }
    Err(turn_in_progress())
}
