//! Bookmarks: the states of the agent that the platform itself keeps, and the way back to
//! one. Only a deployed Worker has them.

use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::Count;

/// Names a state of the whole agent, of now or of a time within the last 30 days, so that
/// `restoreBookmark` can bring it back.
#[derive(Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBookmark {
    /// The time, in milliseconds since the epoch. Left out: now.
    at: Option<Count>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct BookmarkOfTime {
    /// The platform's name of the state.
    bookmark: String,
    at: i64,
}

impl Operation for GetBookmark {
    const NAME: &'static str = "getBookmark";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(feature = "testing")]
    type Output = BookmarkOfTime;
}

impl RunWaiting for GetBookmark {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let at = self.at.map(|at| at.0);
        let bookmark = agent.recovery.find_bookmark(at).await?;
        let at = at.unwrap_or_else(|| agent.host.now_ms());
        Reply::json(&BookmarkOfTime { bookmark, at })
    }
}

/// Brings back the state that a bookmark names, with all sessions, memory and settings of
/// that time. All that came later is gone. The answer's `undo` is a bookmark that brings the
/// present state back.
///
/// The agent starts anew right after the answer. Turns that run end, and sockets are closed.
/// A purge is undone with everything else, if the bookmark is older.
#[derive(Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreBookmark {
    /// As `getBookmark` gave it.
    bookmark: Id,
    /// The agent's name, which guards against mistakes.
    confirm: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct BookmarkRestored {
    restored: bool,
    /// The bookmark of the state that was left.
    undo: String,
}

impl Operation for RestoreBookmark {
    const NAME: &'static str = "restoreBookmark";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(feature = "testing")]
    type Output = BookmarkRestored;
}

impl RunWaiting for RestoreBookmark {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.confirm != agent.name {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be this agent's name, to the letter. Nothing was restored.",
            ));
        }
        let undo = agent.recovery.restore_next(self.bookmark.as_str()).await?;
        agent.starter.restart();
        Reply::json(&BookmarkRestored {
            restored: true,
            undo,
        })
    }
}
