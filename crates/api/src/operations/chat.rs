//! Stopping a turn.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::Result;
use base::ids::Id;
use chat::run::agent::CANCEL_RULE;
use chat::run::queue::withdraw;
use chat::run::recover;
use chat::run::watchers::broadcast_list;

/// Stops the running turn of a session. The answer so far is stored.
///
/// With `messageId`, only the turn of this message is stopped. If the message is still
/// queued, it is removed and never reaches the log.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelTurn {
    session_id: Id,
    /// The user's message, or the message that answers it.
    message_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
pub struct Cancelled {
    /// Whether a turn was running, or the message was waiting.
    cancelled: bool,
}

impl Operation for CancelTurn {
    const NAME: &'static str = CANCEL_RULE.operation;
    const NEEDS: Needs = CANCEL_RULE.needs;
    const EFFECT: Effect = CANCEL_RULE.effect;
    type Output = Cancelled;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for CancelTurn {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let session_id = &self.session_id;
        let message_id = self.message_id.as_ref().map(Id::as_str);
        if let Some(id) = message_id
            && withdraw(agent, session_id, |queued| {
                queued.message_ids.iter().any(|waiting| waiting == id)
            })?
        {
            return Reply::json(&Cancelled { cancelled: true });
        }
        let is_eligible = |question: Option<&Id>, answer: &str| {
            message_id.is_none_or(|id| id == answer || question.is_some_and(|it| it.as_str() == id))
        };
        let cancelled = match agent.turns.find(session_id) {
            Some(running) => {
                let is_eligible = is_eligible(running.question_id.as_ref(), &running.message_id);
                if is_eligible {
                    running.cancel();
                }
                is_eligible
            }
            None => {
                let was_stopped =
                    recover::stop_interrupted(agent.turn_context(), session_id, &|turn| {
                        is_eligible(turn.parent_id.as_ref(), &turn.message_id)
                    })?;
                agent.call_back();
                if was_stopped {
                    broadcast_list(agent, session_id, None);
                }
                was_stopped
            }
        };
        Reply::json(&Cancelled { cancelled })
    }
}
