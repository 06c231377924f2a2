//! Stopping a turn.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs};
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::api::turns::{show_if_watched, turn_context};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::chat::recover;

/// Stops the turn that runs in a session. The answer so far is kept.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelTurn {
    session_id: Id,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// Whether a turn was running.
    cancelled: bool,
}

impl Operation for CancelTurn {
    const NAME: &'static str = "cancelTurn";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    #[cfg(test)]
    type Output = Cancelled;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for CancelTurn {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let cancelled = match agent.turns.find(&self.session_id) {
            Some(running) => {
                running.cancel();
                true
            }
            None => {
                let was_there = recover::stop_cut_off(turn_context(agent), &self.session_id)?;
                if was_there {
                    show_if_watched(agent, &self.session_id, None);
                }
                was_there
            }
        };
        Reply::json(&Cancelled { cancelled })
    }
}
