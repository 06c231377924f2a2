//! The records of turns: when they ran, what they contained, and why they failed.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::Limit;
use chat::record::failures::{load_failed_of_all, load_failed_of_one};
use chat::record::page::{find_turn, load_of_all, load_of_one};
use chat::record::show::{CompletedTurn, TurnName};
use conversation::log::sessions::session_exists;

/// Lists completed turns, newest first: of a session, or of the whole agent.
///
/// A turn contains when it ran, who started it, each model request and tool call with its
/// times, the parts of the context, the usage, and the reason for a failure. It never
/// contains the text of a message, an argument or an output. Running turns are not listed.
///
/// A page reads at most 1,000 events, so it may be short, or empty, and still have a
/// `cursor`. A session stores the records of its 16 newest failed turns, even without
/// output, and of the 16 newest others that ended without output. If an agent has more than
/// 16,384 such records, the list covers 1,024 sessions at a time, most recently created
/// first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTurns {
    session_id: Option<Id>,
    /// Only failed turns.
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    limit: Limit<20, 100>,
    /// The `cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnList {
    turns: Vec<CompletedTurn>,
    /// `null` at the end.
    cursor: Option<String>,
}

impl Operation for GetTurns {
    const NAME: &'static str = "getTurns";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
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

/// Shows one completed turn. `null`: there is no such turn, or its record was deleted with
/// its messages.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTurn {
    /// A turn's `turnId`, from `getTurns`.
    turn_id: TurnName,
    /// The turn's session. Required for a token for one session whose id has 168 characters
    /// or more.
    session_id: Option<Id>,
}

impl Operation for GetTurn {
    const NAME: &'static str = "getTurn";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Option<CompletedTurn>;

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
