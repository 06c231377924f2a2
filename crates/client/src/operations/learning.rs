//! Learning.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Origin;
use crate::operation::Operation;

/// Runs a learning pass over the messages since the previous pass, and proposes facts to remember.
///
/// The agent's setting `learn` defines the block, the model, and whether facts that the user's own
/// words support are applied immediately. Each event is covered once. A call runs at most 8 passes;
/// `complete` is `true` if nothing is left.
///
/// Not available to a token for one session. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Learn {
    /// The session to learn from. Default: all sessions with new messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl Learn {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Learn:
    session_id: impl Into<String>;
}

impl Operation for Learn {
    type Output = Learnt;
    const NAME: &'static str = "learn";
    const READS: bool = false;
}

/// Consolidates a block of facts: merges duplicate entries, retires those that a newer one
/// contradicts, and rewrites a profile.
///
/// Each call runs one step, which shows a model up to 100 entries, newest first; `complete` is
/// `true` when the block is done. The result of a step is a proposal, which `revertProposal` can
/// revert. The merged entries stay as earlier facts.
///
/// Not available to a token for one session. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Consolidate {
    /// The agent's searchable block. Default: the block that the agent learns into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A writable block of the agent, which the first step rewrites from the newest
    /// entries, within its budget. Default: `learn.profile`, if the block is the one that
    /// the agent learns into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Consolidate {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Consolidate:
    label: impl Into<String>;
    profile: impl Into<String>;
}

impl Operation for Consolidate {
    type Output = Consolidated;
    const NAME: &'static str = "consolidate";
    const READS: bool = false;
}

/// Lists the changes to memory that a model proposed, newest first, with the events that each
/// change comes from and its status.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetProposals {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only proposals learned from this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only proposals with this status. A proposal with a pending change is `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ProposalStatus>,
}

impl GetProposals {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetProposals:
    cursor: impl Into<String>;
    limit: i64;
    session_id: impl Into<String>;
    status: ProposalStatus;
}

impl Operation for GetProposals {
    type Output = ProposalPage;
    const NAME: &'static str = "getProposals";
    const READS: bool = true;
}

/// Approves or rejects changes that a model proposed: all pending ones, or those in `changes`.
/// Either all of them are decided or none.
///
/// If an entry has changed since the proposal was made, the call fails with `version_conflict`.
///
/// Not available to a token for one session. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DecideProposal {
    pub id: String,
    /// `true`: the changes are applied. Set this or `reject`.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The changes to decide on. Default: all pending ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<DecidedChange>>,
    /// `true`: the changes are not applied.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reject: Option<bool>,
}

impl DecideProposal {
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            approve: None,
            changes: None,
            reject: None,
        }
    }
}

setters! {
    DecideProposal:
    approve: bool;
    changes: Vec<DecidedChange>;
    reject: bool;
}

impl Operation for DecideProposal {
    type Output = Proposal;
    const NAME: &'static str = "decideProposal";
    const READS: bool = false;
}

/// Reverts everything that a proposal wrote.
///
/// Texts that have been written since are unchanged: their changes stay `applied`, with the
/// `reason`.
///
/// Not available to a token for one session. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RevertProposal {
    pub id: String,
}

impl RevertProposal {
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

impl Operation for RevertProposal {
    type Output = Proposal;
    const NAME: &'static str = "revertProposal";
    const READS: bool = false;
}

words! {
    /// The action of a change.
    pub enum ChangeAction {
        /// Writes a new entry.
        Add = "add",
        /// Changes the text of an entry. The old one stays as a version.
        Replace = "replace",
        /// Marks an entry as no longer true. It stays as an earlier fact.
        Retire = "retire",
        /// Deletes an entry. Its versions stay.
        Forget = "forget",
        /// Writes the text of a writable block.
        Write = "write",
    }
}

words! {
    /// The state of a change.
    pub enum ChangeStatus {
        Pending = "pending",
        Applied = "applied",
        Rejected = "rejected",
        Reverted = "reverted",
        /// Its text was purged.
        Erased = "erased",
    }
}

/// What `consolidate` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Consolidated {
    /// The proposal that the step made. `null`: there is nothing to change.
    pub proposal: Option<Proposal>,
    pub complete: bool,
}

words! {
    /// Who decided on a proposal.
    pub enum DecidedBy {
        /// The trust rules when the fact was learned.
        Trust = "trust",
        /// A caller of `decideProposal` or `revertProposal`.
        Operator = "operator",
    }
}

/// A change to approve or reject. Another text for it is the caller's own: its source becomes
/// `operator`, or `user` for a caller with a minted token.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DecidedChange {
    /// The `index` of the change.
    pub index: i64,
    /// With `approve`: a different text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// With `approve`: a different title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl DecidedChange {
    #[must_use]
    pub fn new(index: i64) -> Self {
        Self {
            index,
            content: None,
            title: None,
        }
    }
}

setters! {
    DecidedChange:
    content: impl Into<String>;
    title: impl Into<String>;
}

/// An event that a change comes from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EvidenceEvent {
    pub session_id: String,
    pub id: String,
    pub seq: i64,
}

/// What `learn` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Learnt {
    /// The number of passes that found new messages.
    pub looks: i64,
    /// The number of events that they covered.
    pub events: i64,
    /// The proposals that they made.
    pub proposals: Vec<Proposal>,
    pub complete: bool,
}

/// One change, as it is stored and shown.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MemoryChange {
    /// Its index in the proposal, from 0.
    pub index: i64,
    pub action: ChangeAction,
    /// The block that it changes.
    pub label: String,
    /// The events that it comes from.
    pub events: Vec<EvidenceEvent>,
    /// The source of the change: the least trusted of those whose words support it.
    pub source: Origin,
    pub status: ChangeStatus,
    /// The version that it was made for; 0: there was none.
    pub made_for: i64,
    /// The current text that the change applies to. Present while the change is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<StandingText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The entry that it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the entry has been deleted and its versions have expired, so that a later
    /// text may have one of their numbers. Such a change is neither applied nor reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outdated: Option<bool>,
    /// The reason why the change needs approval, or why it was not reverted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The entries that this one replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// A proposal, as callers see it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    pub id: String,
    pub kind: ProposalKind,
    pub status: ProposalStatus,
    /// The block that it is about.
    pub label: String,
    /// The session that it was learned from. `null`: from memory itself.
    pub session_id: Option<String>,
    /// The model that proposed it.
    pub model: Option<String>,
    pub created_at: i64,
    pub decided_at: Option<i64>,
    pub decided_by: Option<DecidedBy>,
    /// The number of invalid changes in the model's answer, which were left out.
    pub refused: i64,
    pub changes: Vec<MemoryChange>,
}

words! {
    /// The origin of a proposal.
    pub enum ProposalKind {
        /// A conversation.
        Learn = "learn",
        /// The memory itself, by consolidation.
        Consolidate = "consolidate",
    }
}

/// What `getProposals` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ProposalPage {
    pub proposals: Vec<Proposal>,
    /// Where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

words! {
    /// The state of a proposal, as a whole.
    pub enum ProposalStatus {
        /// At least one change waits for a decision.
        Pending = "pending",
        /// No change is pending, and at least one was applied.
        Applied = "applied",
        /// No change was applied.
        Rejected = "rejected",
        /// The changes were applied and then reverted.
        Reverted = "reverted",
    }
}

/// The text that a pending change would change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct StandingText {
    pub version: i64,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
