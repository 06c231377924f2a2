//! Working context.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::{Role, ToolCall};
use super::shapes::{AppendOutcome, ListedTool};
use crate::Object;
use crate::operation::Operation;

/// Builds the model input of one turn from the newest events of a branch.
///
/// A tool call without a result gets an error as its result. Older long outputs are shortened, and
/// older files are named instead of sent; the log is unchanged. With `maxTokens`, the context has
/// the newest messages that fit, and a sentence at the end of `systemInstructions` gives the number
/// of hidden messages.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BuildWorkingContext {
    pub session_id: String,
    /// Returns in `modelInput` the request that the session's next turn would send, and in
    /// `tools` all of its tools: memory tools, registered tools and those of MCP servers.
    /// Only `leafId` and `format` have an effect; the default `format` is that of the
    /// agent's own model, with the model's name. What the client adds to its turn is
    /// missing, and nothing is frozen. Requires the rights of `listTools`.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_turn: Option<bool>,
    /// The provider whose format `modelInput` has. If omitted, there is no `modelInput`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Provider>,
    /// The number of newest messages whose files are sent. Older files are only named. If omitted:
    /// the agent's `keepMedia`.
    /// Default: `4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_media: Option<i64>,
    /// The end of the branch. Default: the session's leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<String>,
    /// The maximum number of events in the context.
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The maximum number of tokens of the whole context, estimated as the session's
    /// provider counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// Puts the frozen prompt first, and gives the memory's tools and reminder: in
    /// `modelInput`, or in `tools` and `reminder`. If no prompt is frozen yet, one is frozen now,
    /// provided that the caller has the right to.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<bool>,
    /// Added after the agent's own instructions.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instructions: Option<Vec<String>>,
}

impl BuildWorkingContext {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            as_turn: None,
            format: None,
            keep_media: None,
            leaf_id: None,
            limit: None,
            max_tokens: None,
            memory: None,
            system_instructions: None,
        }
    }
}

setters! {
    BuildWorkingContext:
    as_turn: bool;
    format: Provider;
    keep_media: i64;
    leaf_id: impl Into<String>;
    limit: i64;
    max_tokens: i64;
    memory: bool;
    system_instructions: Vec<String>;
}

impl Operation for BuildWorkingContext {
    type Output = WorkingContext;
    const NAME: &'static str = "buildWorkingContext";
    const READS: bool = true;
}

/// Appends the new messages of a turn's context: all of them or none.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PersistWorkingContext {
    pub session_id: String,
    /// The new messages only.
    pub messages: Vec<ContextMessageInput>,
    /// The `leafId` of the context; at another leaf the call fails with `leaf_moved`.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_leaf_id: Option<Option<String>>,
}

impl PersistWorkingContext {
    #[must_use]
    pub fn new(session_id: impl Into<String>, messages: Vec<ContextMessageInput>) -> Self {
        Self {
            session_id: session_id.into(),
            messages,
            expected_leaf_id: None,
        }
    }
}

setters! {
    PersistWorkingContext:
    or null expected_leaf_id: impl Into<String>;
}

impl Operation for PersistWorkingContext {
    type Output = AppendOutcome;
    const NAME: &'static str = "persistWorkingContext";
    const READS: bool = false;
}

/// A message as a model receives it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextMessage {
    pub role: Role,
    /// Default: `""`.
    pub content: String,
    /// Only with role `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
    /// Only with role `tool`: whether the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Only with role `tool`: the id of the call that the message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Only with role `assistant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

/// A message as a model receives it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextMessageInput {
    pub role: Role,
    /// Default: `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Only with role `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<File>>,
    /// Only with role `tool`: whether the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Only with role `tool`: the id of the call that the message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Only with role `assistant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

impl ContextMessageInput {
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            content: None,
            files: None,
            is_error: None,
            tool_call_id: None,
            tool_calls: None,
            tool_name: None,
        }
    }
}

setters! {
    ContextMessageInput:
    content: impl Into<String>;
    files: Vec<File>;
    is_error: bool;
    tool_call_id: impl Into<String>;
    tool_calls: Vec<ToolCall>;
    tool_name: impl Into<String>;
}

/// A part of `ContextMessage`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct File {
    pub media_type: String,
    /// A `data:` or an `https:` URL.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

impl File {
    #[must_use]
    pub fn new(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            media_type: media_type.into(),
            url: url.into(),
            filename: None,
        }
    }
}

setters! {
    File:
    filename: impl Into<String>;
}

words! {
    /// The provider that serves a model.
    pub enum Provider {
        WorkersAi = "workers-ai",
        Anthropic = "anthropic",
        /// OpenAI, or any server with a compatible API.
        Openai = "openai",
    }
}

/// What `buildWorkingContext` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WorkingContext {
    /// The agent's instructions, then those of the request, then loaded documents that
    /// no message contains.
    pub system_instructions: Vec<String>,
    /// Oldest first. Each tool call has its result, and each result its call.
    pub messages: Vec<ContextMessage>,
    pub leaf_id: Option<String>,
    pub tokens_estimate: i64,
    /// Only with `format`: the whole context in that provider's shape, complete except
    /// for the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_input: Option<Object>,
    /// Only with `memory`, and only if a block with a reminder has changed: the text of
    /// `getReminder`. `modelInput` has this text after the newest user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminder: Option<String>,
    /// Only with `memory` and without `format`: the memory's tools, as `getTools` gives
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ListedTool>>,
}
