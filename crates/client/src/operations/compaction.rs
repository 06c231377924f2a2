//! Conversations that grow.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Sets when and how far conversations are compacted. Omitted fields are unchanged.
///
/// With `sessionId`, the settings apply to that session; without it, to all sessions that don't
/// have their own.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfigureCompaction {
    /// The context is compacted automatically beyond this many estimated tokens. `null`:
    /// never, not even by chat turns. If it is not set, only chat turns compact, before
    /// their model's window is full.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub compact_after: Option<Option<i64>>,
    /// The minimum number of newest messages to keep, regardless of length; 2, unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tail_messages: Option<i64>,
    /// The number of the first messages that are never summarized; 3, unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect_head: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tokens of the newest messages that stay as they are; 20,000, unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_token_budget: Option<i64>,
}

impl ConfigureCompaction {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ConfigureCompaction:
    or null compact_after: i64;
    min_tail_messages: i64;
    protect_head: i64;
    session_id: impl Into<String>;
    tail_token_budget: i64;
}

impl Operation for ConfigureCompaction {
    type Output = CompactionSettings;
    const NAME: &'static str = "configureCompaction";
    const READS: bool = false;
}

/// Summarizes the middle of a branch now. The original messages stay in the log, and return to the
/// context when the compaction is deleted.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Compact {
    pub session_id: String,
    /// Only reports what a compaction would do.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// The end of the branch. Default: the session's leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<String>,
}

impl Compact {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            dry_run: None,
            leaf_id: None,
        }
    }
}

setters! {
    Compact:
    dry_run: bool;
    leaf_id: impl Into<String>;
}

impl Operation for Compact {
    type Output = CompactOutput;
    const NAME: &'static str = "compact";
    const READS: bool = false;
}

/// Stores your own summary over a range of a path.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AddCompaction {
    pub session_id: String,
    pub summary: String,
    /// The first message that the summary covers. `toId`, the last, is on the same path.
    pub from_id: String,
    pub to_id: String,
}

impl AddCompaction {
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        summary: impl Into<String>,
        from_id: impl Into<String>,
        to_id: impl Into<String>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            summary: summary.into(),
            from_id: from_id.into(),
            to_id: to_id.into(),
        }
    }
}

impl Operation for AddCompaction {
    type Output = Compaction;
    const NAME: &'static str = "addCompaction";
    const READS: bool = false;
}

/// Lists a session's compactions, oldest first, and why the last attempts compacted or didn't.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetCompactions {
    pub session_id: String,
}

impl GetCompactions {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}

impl Operation for GetCompactions {
    type Output = CompactionList;
    const NAME: &'static str = "getCompactions";
    const READS: bool = true;
}

/// Deletes a compaction. The messages that it covered return to the context.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteCompaction {
    pub session_id: String,
    pub compaction_id: String,
}

impl DeleteCompaction {
    #[must_use]
    pub fn new(session_id: impl Into<String>, compaction_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            compaction_id: compaction_id.into(),
        }
    }
}

impl Operation for DeleteCompaction {
    type Output = DeletedCompaction;
    const NAME: &'static str = "deleteCompaction";
    const READS: bool = false;
}

/// Estimates what a turn on a branch would send to a model, in tokens.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EstimateTokens {
    pub session_id: String,
    /// The end of the branch. Default: the session's leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<String>,
}

impl EstimateTokens {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            leaf_id: None,
        }
    }
}

setters! {
    EstimateTokens:
    leaf_id: impl Into<String>;
}

impl Operation for EstimateTokens {
    type Output = Estimate;
    const NAME: &'static str = "estimateTokens";
    const READS: bool = true;
}

/// What `compact` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CompactOutput {
    pub compaction: Option<Compaction>,
    pub reason: CompactionReason,
    /// Estimated tokens of the whole context.
    pub tokens_before: i64,
    pub tokens_after: i64,
    /// The middle was too long for one compaction; the next one continues.
    pub has_more: bool,
    /// The events that the summary covers, or would cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covers: Option<CoveredIds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed>,
}

/// A stored summary over a range of a path.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub id: String,
    pub summary: String,
    /// The first event that the summary covers; `toId` is the last.
    pub from_id: String,
    pub to_id: String,
    /// Tokens of the whole context; `null` where a caller wrote the summary.
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
    pub created_at: i64,
}

/// A part of `CompactionList`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CompactionDecision {
    pub at: i64,
    /// `true`: the conversation's growth triggered this compaction; `false`: a caller
    /// asked for it.
    pub is_auto: bool,
    pub reason: String,
    pub tokens_before: i64,
    pub tokens_after: i64,
}

/// What `getCompactions` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CompactionList {
    pub compactions: Vec<Compaction>,
    /// The newest last.
    pub decisions: Vec<CompactionDecision>,
}

words! {
    /// A part of `CompactOutput`.
    pub enum CompactionReason {
        /// The overlay was written.
        Compacted = "compacted",
        /// A dry run: a real run would write an overlay.
        WouldCompact = "would_compact",
        /// The conversation has only a protected head and tail.
        NothingToCompact = "nothing_to_compact",
        /// Another compaction of this session is running.
        AlreadyRunning = "already_running",
        /// The summarized events changed during the compaction, so nothing was written.
        ChangedMeanwhile = "changed_meanwhile",
        /// The model failed, so nothing was written; `error` is the reason.
        SummariserFailed = "summariser_failed",
    }
}

/// What `configureCompaction` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CompactionSettings {
    /// The context is compacted automatically when it exceeds this many tokens; `null`:
    /// never.
    pub compact_after: Option<i64>,
    /// The number of first messages that are never summarized.
    pub protect_head: i64,
    /// The newest messages within this many tokens are not summarized.
    pub tail_token_budget: i64,
    /// At least this many of the newest messages are not summarized, regardless of their
    /// tokens.
    pub min_tail_messages: i64,
}

/// The covered events, given by the ids of the first and the last.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CoveredIds {
    pub from_id: String,
    pub to_id: String,
    pub messages: i64,
}

/// What `deleteCompaction` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeletedCompaction {
    pub deleted: bool,
}

/// What `estimateTokens` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub messages: i64,
    pub system_prompt: i64,
    pub tools: i64,
    pub total: i64,
}

/// A part of `CompactOutput`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    pub code: String,
    pub message: String,
}
