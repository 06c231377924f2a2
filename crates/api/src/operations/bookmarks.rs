//! Point-in-time recovery: bookmarks of the agent's state that the platform keeps, and
//! restoring one. Only a deployed Worker has them.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::Count;

/// Returns a bookmark of the whole agent's state, now or at a time within the last 30 days,
/// which `restoreBookmark` can restore.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBookmark {
    /// The time, in milliseconds since the epoch. Default: now.
    at: Option<Count>,
}

#[derive(Serialize, JsonSchema)]
pub struct FoundBookmark {
    /// The platform's bookmark of the state.
    bookmark: String,
    at: i64,
}

impl Operation for GetBookmark {
    const NAME: &'static str = "getBookmark";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = FoundBookmark;
}

impl RunWaiting for GetBookmark {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let at = self.at.map(|at| at.0);
        let bookmark = agent.recovery.find_bookmark(at).await?;
        let at = at.unwrap_or_else(|| agent.host.now_ms());
        Reply::json(&FoundBookmark { bookmark, at })
    }
}

/// Restores the state of a bookmark, with all sessions, memory and settings of that time.
/// Everything newer is lost. The answer's `undo` is a bookmark that restores the current
/// state.
///
/// The agent restarts right after the answer. Running turns end, and sockets are closed. If
/// the bookmark is older than a purge, the purge is undone, too.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreBookmark {
    /// The bookmark from `getBookmark`.
    bookmark: Id,
    /// The agent's name, as a confirmation.
    confirm: String,
}

#[derive(Serialize, JsonSchema)]
pub struct RestoredBookmark {
    restored: bool,
    /// The bookmark of the previous state.
    undo: String,
}

impl Operation for RestoreBookmark {
    const NAME: &'static str = "restoreBookmark";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = RestoredBookmark;
}

impl RunWaiting for RestoreBookmark {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.confirm != agent.name {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be exactly this agent's name. Nothing was restored.",
            ));
        }
        let undo = agent.recovery.restore_next(self.bookmark.as_str()).await?;
        agent.background.restart();
        Reply::json(&RestoredBookmark {
            restored: true,
            undo,
        })
    }
}
