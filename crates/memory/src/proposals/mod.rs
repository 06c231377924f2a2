//! Proposals: memory changes that a model proposes, each with the events it comes from. A
//! proposal is stored before anything else is done with it, and records the outcome of each
//! of its changes. So a fact can be traced to its evidence, and one call reverts a whole
//! proposal.
//!
//! Invariant: a change names the version that it was made for. It is never applied to a
//! text that was written since then, nor reverted from one. If version numbers may be
//! reused, because versions were deleted, `outdated.rs` marks the proposals.

pub mod apply;
pub mod decide;
pub mod erase;
pub mod outdated;
pub mod revert;
pub mod rows;

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BlockScope;
use crate::origin::Origin;
use base::ids::Id;

/// The most changes of one proposal.
pub const MAX_CHANGES: usize = 32;

/// The origin of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProposalKind {
    /// A conversation.
    Learn,
    /// The memory itself, by consolidation.
    Consolidate,
}

impl ProposalKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Learn => "learn",
            Self::Consolidate => "consolidate",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Learn, Self::Consolidate]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// The state of a proposal, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProposalStatus {
    /// At least one change waits for a decision.
    Pending,
    /// No change is pending, and at least one was applied.
    Applied,
    /// No change was applied.
    Rejected,
    /// The changes were applied and then reverted.
    Reverted,
}

impl ProposalStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Reverted => "reverted",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pending, Self::Applied, Self::Rejected, Self::Reverted]
            .into_iter()
            .find(|status| status.name() == name)
    }

    /// The status of a proposal with these changes.
    pub fn of(changes: &[MemoryChange]) -> Self {
        let has = |status| changes.iter().any(|change| change.status == status);
        if has(ChangeStatus::Pending) {
            Self::Pending
        } else if has(ChangeStatus::Applied) {
            Self::Applied
        } else if has(ChangeStatus::Reverted) {
            Self::Reverted
        } else {
            Self::Rejected
        }
    }
}

/// The action of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeAction {
    /// Writes a new entry.
    Add,
    /// Changes the text of an entry. The old one stays as a version.
    Replace,
    /// Marks an entry as no longer true. It stays as an earlier fact.
    Retire,
    /// Deletes an entry. Its versions stay.
    Forget,
    /// Writes the text of a writable block.
    Write,
}

/// The state of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeStatus {
    Pending,
    Applied,
    Rejected,
    Reverted,
    /// Its text was purged.
    Erased,
}

/// An event that a change comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceEvent {
    pub session_id: String,
    pub id: String,
    pub seq: i64,
}

/// One change, as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryChange {
    /// Its index in the proposal, from 0.
    pub index: i64,
    pub action: ChangeAction,
    /// The block that it changes.
    pub label: String,
    /// The entry that it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The entries that this one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<String>,
    /// The events that it comes from.
    pub events: Vec<EvidenceEvent>,
    /// The source of the change: the least trusted of those whose words support it.
    pub source: Origin,
    pub status: ChangeStatus,
    /// The reason why the change needs approval, or why it was not reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version that it was made for; 0: there was none.
    pub made_for: i64,
    /// The version that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Whether the entry has been deleted and its versions have expired, so that a later
    /// text may have one of their numbers. Such a change is neither applied nor reverted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
    /// The current text that the change applies to. Present while the change is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CurrentText>,
}

/// The text that a pending change would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentText {
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub content: String,
}

/// Who decided on a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecidedBy {
    /// The trust rules when the fact was learned.
    Trust,
    /// A caller of `decideProposal` or `revertProposal`.
    Operator,
}

/// The scope of a proposal's block, which follows from the authority behind the messages
/// that it was learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProposalScope {
    /// The agent's block.
    #[default]
    Agent,
    /// The agent's block. The messages are those of a caller who may only write this
    /// session's memory, so nothing is written before somebody else approves it.
    Narrowed,
    /// The session's own block.
    Session,
}

impl ProposalScope {
    pub fn is_agent(&self) -> bool {
        *self == Self::Agent
    }
}

/// The session that a proposal was learned from, and the scope of its block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposalOrigin {
    /// `None`: it comes from memory itself.
    pub session_id: Option<Id>,
    pub scope: ProposalScope,
}

impl ProposalOrigin {
    /// The owner of the block.
    pub fn block_scope(&self) -> BlockScope<'_> {
        match (&self.session_id, self.scope) {
            (Some(id), ProposalScope::Session) => BlockScope::Session(id),
            _ => BlockScope::Agent,
        }
    }
}

/// The facts about a proposal other than its changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProposalNote {
    pub created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// The number of invalid changes in the model's answer, which were left out.
    pub refused: i64,
    #[serde(skip_serializing_if = "ProposalScope::is_agent")]
    pub scope: ProposalScope,
}

/// A proposal, as callers see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
