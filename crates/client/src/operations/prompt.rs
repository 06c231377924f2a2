//! System prompt.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Renders the current blocks: the agent's, then the session's.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RenderPrompt {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<PromptFormat>,
    /// The session whose blocks follow the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RenderPrompt {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    RenderPrompt:
    format: PromptFormat;
    session_id: impl Into<String>;
}

impl Operation for RenderPrompt {
    type Output = RenderedPrompt;
    const NAME: &'static str = "renderPrompt";
    const READS: bool = true;
}

/// Returns the frozen prompt: the same bytes in every call until it is refreshed.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FreezePrompt {
    /// The session whose blocks follow the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl FreezePrompt {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    FreezePrompt:
    session_id: impl Into<String>;
}

impl Operation for FreezePrompt {
    type Output = FrozenPrompt;
    const NAME: &'static str = "freezePrompt";
    const READS: bool = false;
}

/// Renders the prompt again and freezes it.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RefreshPrompt {
    /// The session whose blocks follow the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RefreshPrompt {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    RefreshPrompt:
    session_id: impl Into<String>;
}

impl Operation for RefreshPrompt {
    type Output = FrozenPrompt;
    const NAME: &'static str = "refreshPrompt";
    const READS: bool = false;
}

/// Refreshes the frozen prompts of the agent and of all its sessions: each is rendered again when
/// it is next used, for example in the session's next turn.
///
/// A call refreshes at most 5,000 prompts. If `hasMore` is `true`, call again.
///
/// Not available to a token for one session. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RefreshPrompts {}

impl RefreshPrompts {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Operation for RefreshPrompts {
    type Output = RefreshedPrompts;
    const NAME: &'static str = "refreshPrompts";
    const READS: bool = false;
}

/// Returns the current text of blocks with `whenChanged: "remind"` that differ from the frozen
/// prompt; `null` if none differs.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetReminder {
    /// The session whose prompt and blocks are compared, besides the agent's blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetReminder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetReminder:
    session_id: impl Into<String>;
}

impl Operation for GetReminder {
    type Output = Reminder;
    const NAME: &'static str = "getReminder";
    const READS: bool = true;
}

/// What `freezePrompt`, `refreshPrompt` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FrozenPrompt {
    pub prompt: String,
    /// SHA-256 of the prompt, in hex.
    pub hash: String,
    pub frozen_at: i64,
}

words! {
    /// A part of `undefined`.
    pub enum PromptFormat {
        Text = "text",
        Xml = "xml",
    }
}

/// What `refreshPrompts` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RefreshedPrompts {
    /// The number of prompts that were frozen.
    pub refreshed: i64,
    pub has_more: bool,
}

/// What `getReminder` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Reminder {
    pub text: Option<String>,
}

/// What `renderPrompt` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RenderedPrompt {
    pub prompt: String,
    pub tokens_estimate: i64,
}
