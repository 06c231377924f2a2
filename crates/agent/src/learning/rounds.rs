//! Which conversation is looked at next: by the alarm when its look is due, or by hand.

use super::look::{Looked, get_settings, look};
use super::marks::{count_waiting, find_mark, find_next, find_next_timed, put_off};
use super::tracker::LearningTracker;
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::log::sessions::session_exists;
use crate::memory::Memory;
use crate::memory::proposals::rows::StoredProposal;
use crate::store::learn_due::IDLE_MS;
use crate::store::learn_settings::LearnAfter;

/// How many looks one call, or one alarm, takes.
const MAX_LOOKS: usize = 8;

/// While another look is under way, the alarm comes back after so long.
const BUSY_MS: i64 = 10_000;

/// What the looks of one call did.
#[derive(Debug, Default)]
pub struct Round {
    pub looks: i64,
    pub events: i64,
    pub proposals: Vec<StoredProposal>,
    /// Whether nothing is left to look at.
    pub is_complete: bool,
}

impl Round {
    fn add(&mut self, looked: Looked) {
        self.looks += i64::from(looked.events > 0);
        self.events += looked.events;
        self.proposals.extend(looked.proposal);
    }
}

/// Looks at a session, or at all sessions in which something new was said.
pub async fn learn_by_hand(
    memory: &Memory<'_>,
    tracker: &LearningTracker,
    session_id: Option<&Id>,
) -> Result<Round> {
    get_settings(memory)?;
    if let Some(id) = session_id
        && !session_exists(memory.db, id)?
    {
        return Err(Error::session_not_found(id.as_str()));
    }
    let _lease = tracker.take().ok_or_else(is_busy)?;
    let mut round = Round::default();
    for _ in 0..MAX_LOOKS {
        let next = match session_id {
            Some(id) => id.clone(),
            None => match find_next(memory.db)? {
                Some(due) => due.id,
                None => break,
            },
        };
        let looked = look(memory, &next).await?;
        let has_more = looked.has_more;
        round.add(looked);
        if session_id.is_some() && !has_more {
            round.is_complete = true;
            return Ok(round);
        }
    }
    round.is_complete = match session_id {
        Some(_) => false,
        None => count_waiting(memory.db, 1)? == 0,
    };
    Ok(round)
}

fn is_busy() -> Error {
    Error::new(
        Code::RateLimited,
        "This agent is looking at a conversation already. Try again in 5 s.",
    )
    .with("retryAfter", 5)
}

/// When the next look is due by itself. `None`: none is.
pub fn find_due_time(memory: &Memory<'_>) -> Result<Option<i64>> {
    let Some(due) = find_next_timed(memory.db)? else {
        return Ok(None);
    };
    Ok(match get_settings(memory) {
        Ok((_, settings)) if settings.after != LearnAfter::Manual => Some(due.due_at),
        // What waits goes on waiting until learning is switched on again.
        Ok(_) | Err(_) => None,
    })
}

/// What the alarm's looks came to.
#[derive(Debug, Default)]
pub struct TimedRound {
    /// When the next look is due.
    pub next_at: Option<i64>,
    pub failure: Option<Error>,
    /// Whether a proposal was made.
    pub has_learnt: bool,
}

/// Takes the looks that are due.
pub async fn learn_if_due(memory: &Memory<'_>, tracker: &LearningTracker) -> Result<TimedRound> {
    let mut round = TimedRound::default();
    let Some(due_at) = find_due_time(memory)? else {
        return Ok(round);
    };
    let now_ms = memory.host.now_ms();
    if due_at > now_ms {
        round.next_at = Some(due_at);
        return Ok(round);
    }
    let Some(_lease) = tracker.take() else {
        round.next_at = Some(now_ms + BUSY_MS);
        return Ok(round);
    };
    for _ in 0..MAX_LOOKS {
        round.next_at = find_due_time(memory)?;
        let Some(due) = find_next_timed(memory.db)? else {
            break;
        };
        if round.next_at.is_none_or(|at| at > memory.host.now_ms()) {
            break;
        }
        if !is_quiet(memory, &due.id)? {
            continue;
        }
        match look(memory, &due.id).await {
            Ok(looked) => round.has_learnt |= looked.proposal.is_some(),
            Err(error) => round.failure = Some(error),
        }
    }
    round.next_at = find_due_time(memory)?;
    Ok(round)
}

/// Whether a session may be looked at now. If the agent learns from idle conversations and
/// something was said a short time ago, the look is put off.
fn is_quiet(memory: &Memory<'_>, session_id: &Id) -> Result<bool> {
    let (_, settings) = get_settings(memory)?;
    if settings.after != LearnAfter::Idle {
        return Ok(true);
    }
    let Some(mark) = find_mark(memory.db, session_id)? else {
        return Ok(true);
    };
    // After a failure, the pause is the failure's.
    let quiet_at = mark.newest_at + IDLE_MS;
    if quiet_at <= memory.host.now_ms() || mark.failure.is_some() {
        return Ok(true);
    }
    put_off(memory.db, session_id, quiet_at)?;
    Ok(false)
}
