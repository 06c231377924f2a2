//! Learning.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Origin;
use crate::operation::Operation;

/// Looks at what was said since the last look, and proposes what is worth keeping.
///
/// The agent's setting `learn` says into which block, by which model, and whether what the user's
/// own words bear out counts at once. Each event is looked at once. A call takes 8 looks at most;
/// `complete` says whether nothing is left.
///
/// Not for a token that is narrowed to a session. A minted token runs it only if it names it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Learn {
    /// The session to look at. Left out: all in which something new was said.
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

/// Puts a block of facts in order: merges entries that say the same, retires those that a newer one
/// contradicts, and writes a profile anew.
///
/// A call takes one step, which shows a model up to 100 entries, the newest first; `complete` says
/// whether the block is done. The result of a step is a proposal, which `revertProposal` takes
/// back. The merged entries stay as earlier facts.
///
/// Not for a token that is narrowed to a session. A minted token runs it only if it names it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Consolidate {
    /// The agent's searchable block. Left out: the block that the agent learns into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A writable block of the agent, which the first step writes anew from the newest
    /// entries, within its budget. Left out: `learn.profile`, if the block is the one that the
    /// agent learns into.
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

/// Lists what a model proposed to change in memory, newest first, with the events that each change
/// comes from and what became of it.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
///
/// Not for a token that is narrowed to a session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetProposals {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only what was learnt from this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only proposals of this status. One of which a change waits is `pending`.
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

/// Approves or rejects changes that a model proposed: all that wait, or those that `changes` names.
/// All of them are decided, or none.
///
/// An entry that was written since the proposal is `version_conflict`.
///
/// Not for a token that is narrowed to a session. A minted token runs it only if it names it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DecideProposal {
    pub id: String,
    /// `true`: the changes are applied. Give this or `reject`.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The changes that are meant. Left out: all that wait.
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

/// Takes back what a proposal wrote, all of it by one call.
///
/// A text that was written since stays as it is: its change stays `applied`, and `reason` says why.
///
/// Not for a token that is narrowed to a session. A minted token runs it only if it names it.
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
        /// Gives an entry another text. The old one stays as a version.
        Replace = "replace",
        /// Has an entry hold no longer. It stays in the past.
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
    /// The proposal that the step made. `null`: nothing is to be changed.
    pub proposal: Option<Proposal>,
    pub complete: bool,
}

words! {
    /// The one who decided on a proposal.
    pub enum DecidedBy {
        /// The rules of trust, when it was learnt.
        Trust = "trust",
        /// A caller of `decideProposal` or `revertProposal`.
        Operator = "operator",
    }
}

/// A change that is decided on. Another text for it is the caller's own: its source becomes
/// `operator`, or `user` for a caller with a minted token.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DecidedChange {
    /// The `index` of the change.
    pub index: i64,
    /// With `approve`: another text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// With `approve`: another title.
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
    /// The number of looks that found something said.
    pub looks: i64,
    /// The number of events that they were about.
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
    /// Its place in the proposal, from 0.
    pub index: i64,
    pub action: ChangeAction,
    /// The block that it changes.
    pub label: String,
    /// The events that it comes from.
    pub events: Vec<EvidenceEvent>,
    /// The source of the change: the least trusted of those whose words bear it out.
    pub source: Origin,
    pub status: ChangeStatus,
    /// The version that it was made for; 0: there was none.
    pub made_for: i64,
    /// The text that the change is about, as it stands now. Shown while the change waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<StandingText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The entry that it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether the entry was deleted and its versions were forgotten since, so that a later
    /// text has one of their numbers. Such a change is neither applied nor taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outdated: Option<bool>,
    /// The reason why the change waits, or why it was not taken back.
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
    /// The session that it was learnt from. `null`: from memory itself.
    pub session_id: Option<String>,
    /// The model that proposed it.
    pub model: Option<String>,
    pub created_at: i64,
    pub decided_at: Option<i64>,
    pub decided_by: Option<DecidedBy>,
    /// The number of changes in the model's answer that broke a rule and are left out.
    pub refused: i64,
    pub changes: Vec<MemoryChange>,
}

words! {
    /// The origin of a proposal.
    pub enum ProposalKind {
        /// A conversation.
        Learn = "learn",
        /// The memory itself, which was put in order.
        Consolidate = "consolidate",
    }
}

/// What `getProposals` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ProposalPage {
    pub proposals: Vec<Proposal>,
    /// The place where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

words! {
    /// The state of a proposal, as a whole.
    pub enum ProposalStatus {
        /// At least one change waits for a decision.
        Pending = "pending",
        /// No change waits, and at least one was applied.
        Applied = "applied",
        /// No change was applied.
        Rejected = "rejected",
        /// The changes were applied and then taken back.
        Reverted = "reverted",
    }
}

/// The text that a waiting change would change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct StandingText {
    pub version: i64,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
