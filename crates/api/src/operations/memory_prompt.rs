//! Operations on the system prompt, which is rendered from the blocks.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use access::{Effect, Needs};
use base::error::Result;
use base::ids::Id;
use base::tokens;
use memory::BlockScope;
use memory::frozen::FrozenPrompt;
use memory::frozen::{MAX_FORGOTTEN, find_reminder, forget_all, freeze, refresh};
use memory::prompt::{PromptFormat, render};
use memory::view::read_view;

/// Renders the current blocks: the agent's, then the session's.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenderPrompt {
    /// The session whose blocks follow the agent's.
    session_id: Option<Id>,
    #[serde(default)]
    format: PromptFormat,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedPrompt {
    prompt: String,
    tokens_estimate: i64,
}

impl Operation for RenderPrompt {
    const NAME: &'static str = "renderPrompt";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = RenderedPrompt;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for RenderPrompt {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let blocks = read_view(&agent.memory(), scope).await?;
        let prompt = render(&blocks, self.format);
        Reply::json(&RenderedPrompt {
            tokens_estimate: tokens::estimate(&prompt),
            prompt,
        })
    }
}

/// Returns the frozen prompt: the same bytes in every call until it is refreshed.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FreezePrompt {
    /// The session whose blocks follow the agent's.
    session_id: Option<Id>,
}

impl Operation for FreezePrompt {
    const NAME: &'static str = "freezePrompt";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = FrozenPrompt;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for FreezePrompt {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        Reply::json(&freeze(&agent.memory(), scope).await?)
    }
}

/// Renders the prompt again and freezes it.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RefreshPrompt(FreezePrompt);

impl Operation for RefreshPrompt {
    const NAME: &'static str = "refreshPrompt";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = FrozenPrompt;

    fn session_id(&self) -> Option<&Id> {
        self.0.session_id.as_ref()
    }
}

impl RunWaiting for RefreshPrompt {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.0.session_id.as_ref())?;
        Reply::json(&refresh(&agent.memory(), scope).await?)
    }
}

/// Refreshes the frozen prompts of the agent and of all its sessions: each is rendered
/// again when it is next used, for example in the session's next turn.
///
/// A call refreshes at most 5,000 prompts. If `hasMore` is `true`, call again.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefreshPrompts {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshedPrompts {
    /// The number of prompts that were frozen.
    refreshed: i64,
    has_more: bool,
}

impl Operation for RefreshPrompts {
    const NAME: &'static str = "refreshPrompts";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Prompts;
    type Output = RefreshedPrompts;
}

impl RunAtOnce for RefreshPrompts {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let refreshed = forget_all(agent.db)?;
        Reply::json(&RefreshedPrompts {
            refreshed,
            has_more: refreshed == MAX_FORGOTTEN,
        })
    }
}

/// Returns the current text of blocks with `whenChanged: "remind"` that differ from the
/// frozen prompt; `null` if none differs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetReminder {
    /// The session whose prompt and blocks are compared, besides the agent's blocks.
    session_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reminder {
    text: Option<String>,
}

impl Operation for GetReminder {
    const NAME: &'static str = "getReminder";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Reminder;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetReminder {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let text = find_reminder(&agent.memory(), scope).await?;
        Reply::json(&Reminder { text })
    }
}
