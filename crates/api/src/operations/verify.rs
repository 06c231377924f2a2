//! Checking what an object stores.

use crate::json_schema::JsonSchema;
use serde::Deserialize;

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::log::sessions::session_exists;
use lifecycle::verify::Verified;
use lifecycle::verify::verify;

/// Checks whether the agent's stored data is consistent, and lists what is wrong: events,
/// branches, summaries, media, the word index, memory, its versions and its counts.
///
/// It only reads. Each request checks a limited part of the tables: repeat it with the
/// answer's `cursor` until that is `null`. A finding identifies a row by its ids and never
/// shows its content. Data stored outside this agent is not checked.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verify {
    /// Check only this session's rows.
    session_id: Option<Id>,
    cursor: Option<String>,
}

impl Operation for Verify {
    const NAME: &'static str = "verify";
    const NEEDS: Needs = Needs::Narrowed;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Verified;
}

impl RunAtOnce for Verify {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let only = agent.caller.only_session();
        if only.is_some() && self.session_id.is_some() && self.session_id.as_ref() != only {
            return Err(Error::new(
                Code::Forbidden,
                "This token is for another session.",
            ));
        }
        let session_id = self.session_id.as_ref().or(only);
        if let Some(id) = session_id
            && !session_exists(agent.db, id)?
        {
            return Err(Error::session_not_found(id.as_str()));
        }
        Reply::json(&verify(agent.db, session_id, self.cursor.as_deref())?)
    }
}
