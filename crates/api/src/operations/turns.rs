//! The records of turns: when they ran, what they were made of, and why they failed.

use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::Limit;
use chat::record::failures::{load_failed_of_all, load_failed_of_one};
use chat::record::page::{find_turn, load_of_all, load_of_one};
use chat::record::show::{ShownTurn, TurnName};
use log::sessions::session_exists;

/// Lists turns that are over, newest first: of a session, or of the whole agent.
///
/// A turn tells when it ran, who asked, each request to a model and each tool's call with its
/// times, the parts of the context, what was spent, and why it failed. No word of a message,
/// an argument or an output is in it. A running turn is not listed.
///
/// A page looks at 1,000 events at most, so it may be short, or empty, and still have a `cursor`. A
/// session keeps the records of its 16 newest failed turns, also where nothing was said, and of the
/// 16 newest others that ended without a word. If an agent keeps more than 16,384 such records, its
/// list takes 1,024 sessions at a time, those that began last first.
#[derive(Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTurns {
    session_id: Option<Id>,
    /// Failed turns alone.
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    limit: Limit<20, 100>,
    /// The `cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema, Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct TurnList {
    turns: Vec<ShownTurn>,
    /// `null` at the end.
    cursor: Option<String>,
}

impl Operation for GetTurns {
    const NAME: &'static str = "getTurns";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(feature = "testing")]
    type Output = TurnList;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for GetTurns {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let db = agent.db;
        let cursor = self.cursor.as_deref();
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        if let Some(id) = &self.session_id
            && !session_exists(db, id)?
        {
            return Err(Error::session_not_found(id.as_str()));
        }
        let page = match (&self.session_id, self.failed) {
            (Some(id), false) => load_of_one(db, id, cursor, limit)?,
            (Some(id), true) => load_failed_of_one(db, id, cursor, limit)?,
            (None, false) => load_of_all(db, agent.host.now_ms(), cursor, limit)?,
            (None, true) => load_failed_of_all(db, cursor, limit)?,
        };
        Reply::json(&TurnList {
            turns: page.turns,
            cursor: page.cursor,
        })
    }
}

/// Shows one turn that is over. `null`: there is no such turn, or its record went with its
/// messages.
#[derive(Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTurn {
    /// A turn's `turnId`, from `getTurns`.
    turn_id: TurnName,
    /// The turn's session. A token of one session whose id has 168 characters or more needs
    /// it.
    session_id: Option<Id>,
}

impl Operation for GetTurn {
    const NAME: &'static str = "getTurn";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(feature = "testing")]
    type Output = Option<ShownTurn>;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref().or(Some(&self.turn_id.session))
    }
}

impl RunAtOnce for GetTurn {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        Reply::json(&find_turn(
            agent.db,
            &self.turn_id,
            self.session_id.as_ref(),
        )?)
    }
}
