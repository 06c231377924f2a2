//! Resumes the turns that were interrupted when the object was evicted, and starts queued requests.

use crate::run::agent::Agent;
use crate::run::out_of_band;
use crate::run::queue::start_queued;
use crate::run::recover;
use crate::run::replies::accept_out_of_band_results;
use crate::run::work::TurnWork;
use crate::turn::store::{MAX_RESUMED, has_turn, load_interrupted_sessions};
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::log::queued;
use conversation::session::last_turns::{MAX_FOUND, fold_surplus};

/// Resumes an interrupted turn; `None`: there is no such turn, or it runs already.
pub fn resume_turn(agent: &Agent<'_>, session_id: &Id) -> Result<Option<TurnWork>> {
    if agent.turns.find(session_id).is_some() || !has_turn(agent.db, session_id)? {
        return Ok(None);
    }
    let recovered = recover::resume_turn(agent.turn_context(), session_id)?;
    Ok(recovered.map(|recovered| TurnWork::Resume(Box::new(recovered))))
}

/// The result of a scan for interrupted turns.
#[derive(Default)]
pub struct RecoveryRound {
    pub works: Vec<TurnWork>,
    /// Why some turns could not be resumed. One failure does not stop the other turns.
    pub failures: Vec<Error>,
    /// Whether more turns remain, for the time when these have ended or for the next round.
    pub is_more_left: bool,
}

impl RecoveryRound {
    /// Resumes the work that a few sessions' turns left.
    fn resume_left(
        &mut self,
        agent: &Agent<'_>,
        load: fn(&dyn Database) -> Result<Vec<Id>>,
        take: fn(&Agent<'_>, &Id) -> Result<Option<TurnWork>>,
    ) {
        match load(agent.db) {
            Ok(sessions) => {
                self.is_more_left |= sessions.len() == MAX_FOUND;
                for session_id in sessions {
                    self.add(take(agent, &session_id));
                }
            }
            Err(error) => self.add(Err(error)),
        }
    }

    fn add(&mut self, outcome: Result<Option<TurnWork>>) {
        match outcome {
            Ok(work) => self.works.extend(work),
            // The turn was closed: a later scan does not find it.
            Err(error) if error.code == Code::CorruptRow => self.failures.push(error),
            Err(error) => {
                self.failures.push(error);
                self.is_more_left = true;
            }
        }
    }
}

/// Resumes a few of the interrupted turns, and processes out-of-band tool results and queued
/// messages that remain after a turn's end.
pub fn resume_some_turns(agent: &Agent<'_>) -> RecoveryRound {
    let mut round = RecoveryRound::default();
    let free = MAX_RESUMED.saturating_sub(agent.turns.count_resumed());
    match load_interrupted_sessions(agent.db, &agent.turns.sessions(), free + 1) {
        Ok(sessions) => {
            round.is_more_left = sessions.len() > free;
            for session_id in sessions.iter().take(free) {
                round.add(resume_turn(agent, session_id));
            }
        }
        Err(error) => round.add(Err(error)),
    }
    if let Err(error) = fold_surplus(agent.db) {
        round.add(Err(error));
    }
    round.resume_left(
        agent,
        out_of_band::load_sessions_left,
        accept_out_of_band_results,
    );
    round.resume_left(agent, queued::load_sessions_left, start_queued);
    round
}
