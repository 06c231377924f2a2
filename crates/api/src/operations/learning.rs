//! Operations on learning: learning passes and consolidation on demand, and the resulting
//! proposals.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::memory_blocks::SetBlock;
use super::memory_entries::SetEntry;
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use access::{Effect, Needs, permit_by_name};
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, Limit, MAX_INTEGER, optional_list};
use learning::consolidate::{ConsolidationRequest, consolidate};
use learning::rounds::learn_manually;
use memory::label::Label;
use memory::proposals::apply::find_current;
use memory::proposals::decide::{ChosenChange, Decision, decide};
use memory::proposals::revert::revert;
use memory::proposals::rows::{ProposalFilter, StoredProposal, load_page};
use memory::proposals::{MAX_CHANGES, Proposal, ProposalStatus};
use memory::writer::MemoryWriter;

fn show(agent: &Agent<'_>, proposal: StoredProposal) -> Result<Proposal> {
    let memory = agent.memory();
    let origin = proposal.origin()?;
    proposal.show(&|change| find_current(&memory, &origin, change))
}

fn show_all(agent: &Agent<'_>, proposals: Vec<StoredProposal>) -> Result<Vec<Proposal>> {
    proposals
        .into_iter()
        .map(|proposal| show(agent, proposal))
        .collect()
}

/// Runs a learning pass over the messages since the previous pass, and proposes facts to
/// remember.
///
/// The agent's setting `learn` defines the block, the model, and whether facts that the
/// user's own words support are applied immediately. Each event is covered once. A call
/// runs at most 8 passes; `complete` is `true` if nothing is left.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Learn {
    /// The session to learn from. Default: all sessions with new messages.
    session_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Learnt {
    /// The number of passes that found new messages.
    looks: i64,
    /// The number of events that they covered.
    events: i64,
    /// The proposals that they made.
    proposals: Vec<Proposal>,
    complete: bool,
}

impl Operation for Learn {
    const NAME: &'static str = "learn";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Prompts;
    const IS_LONG: bool = true;
    type Output = Learnt;
}

impl RunWaiting for Learn {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let memory = agent.memory();
        let session_id = self.session_id.as_ref();
        let round = learn_manually(&memory, &agent.work.learning, session_id).await?;
        Reply::json(&Learnt {
            looks: round.passes,
            events: round.events,
            proposals: show_all(agent, round.proposals)?,
            complete: round.is_complete,
        })
    }
}

/// Consolidates a block of facts: merges duplicate entries, retires those that a newer one
/// contradicts, and rewrites a profile.
///
/// Each call runs one step, which shows a model up to 100 entries, newest first; `complete`
/// is `true` when the block is done. The result of a step is a proposal, which
/// `revertProposal` can revert. The merged entries stay as earlier facts.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consolidate {
    /// The agent's searchable block. Default: the block that the agent learns into.
    label: Option<Label>,
    /// A writable block of the agent, which the first step rewrites from the newest
    /// entries, within its budget. Default: `learn.profile`, if the block is the one that
    /// the agent learns into.
    profile: Option<Label>,
}

#[derive(Serialize, JsonSchema)]
pub struct Consolidated {
    /// The proposal that the step made. `null`: there is nothing to change.
    proposal: Option<Proposal>,
    complete: bool,
}

impl Operation for Consolidate {
    const NAME: &'static str = "consolidate";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Prompts;
    const IS_LONG: bool = true;
    type Output = Consolidated;
}

impl RunWaiting for Consolidate {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let memory = agent.memory();
        let request = ConsolidationRequest {
            label: self.label.as_ref().map(Label::as_str),
            profile: self.profile.as_ref().map(Label::as_str),
            is_timed: false,
            entries_wait: permit_by_name(agent.caller, SetEntry::RULE).is_err(),
            profile_waits: permit_by_name(agent.caller, SetBlock::RULE).is_err(),
        };
        let ordered = consolidate(&memory, request).await?;
        let proposal = ordered.proposal;
        Reply::json(&Consolidated {
            proposal: proposal.map(|proposal| show(agent, proposal)).transpose()?,
            complete: ordered.is_complete,
        })
    }
}

/// Lists the changes to memory that a model proposed, newest first, with the events that
/// each change comes from and its status.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetProposals {
    /// Only proposals with this status. A proposal with a pending change is `pending`.
    status: Option<ProposalStatus>,
    /// Only proposals learned from this session.
    session_id: Option<Id>,
    #[serde(default)]
    limit: Limit<20, 100>,
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct ProposalPage {
    proposals: Vec<Proposal>,
    /// Where the page ended. `null` on the last page.
    cursor: Option<String>,
}

impl Operation for GetProposals {
    const NAME: &'static str = "getProposals";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = ProposalPage;
}

impl RunAtOnce for GetProposals {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let below = match self.cursor {
            None => MAX_INTEGER,
            Some(cursor) => cursor.parse().map_err(|_| {
                Error::invalid(
                    "cursor",
                    "`cursor` must be the unchanged `cursor` of an earlier answer.",
                )
            })?,
        };
        let filter = ProposalFilter {
            status: self.status,
            session_id: self.session_id.as_ref().map(Id::as_str),
        };
        let limit = self.limit.0;
        let mut found = load_page(agent.db, filter, below, limit + 1)?;
        let mut has_more = found.len() as i64 > limit;
        found.truncate(usize::try_from(limit).unwrap_or(0));
        // A pending change includes the current text, which may be long.
        let mut capacity = AnswerCapacity::of(MAX_ANSWER_BYTES);
        let mut proposals = Vec::new();
        for stored in found {
            let shown = show(agent, stored)?;
            if !capacity.takes(json::encode(&shown)?.len()) {
                has_more = true;
                break;
            }
            proposals.push(shown);
        }
        let cursor = proposals
            .last()
            .filter(|_| has_more)
            .map(|last| last.id.clone());
        Reply::json(&ProposalPage { proposals, cursor })
    }
}

/// Approves or rejects changes that a model proposed: all pending ones, or those in
/// `changes`. Either all of them are decided or none.
///
/// If an entry has changed since the proposal was made, the call fails with `version_conflict`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecideProposal {
    id: String,
    /// `true`: the changes are applied. Set this or `reject`.
    #[serde(default)]
    approve: bool,
    /// `true`: the changes are not applied.
    #[serde(default)]
    reject: bool,
    /// The changes to decide on. Default: all pending ones.
    #[serde(default, deserialize_with = "optional_list::<_, _, 1, MAX_CHANGES>")]
    #[schemars(length(min = 1, max = MAX_CHANGES))]
    changes: Option<Vec<DecidedChange>>,
}

/// A change to approve or reject. Another text for it is the caller's own: its source becomes
/// `operator`, or `user` for a caller with a minted token.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecidedChange {
    /// The `index` of the change.
    index: Count,
    /// With `approve`: a different title.
    title: Option<String>,
    /// With `approve`: a different text.
    content: Option<String>,
}

impl Operation for DecideProposal {
    const NAME: &'static str = "decideProposal";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Proposal;
}

impl RunAtOnce for DecideProposal {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let decision = match (self.approve, self.reject) {
            (true, false) => Decision::Approve,
            (false, true) => Decision::Reject,
            (true, true) | (false, false) => {
                let message = "Set either `approve: true` or `reject: true`, not both.";
                return Err(Error::invalid("approve", message));
            }
        };
        let chosen: Option<Vec<ChosenChange>> = self.changes.map(|changes| {
            let chosen = changes.into_iter().map(|change| ChosenChange {
                index: change.index.0,
                title: change.title,
                content: change.content,
            });
            chosen.collect()
        });
        let memory = agent.memory();
        let editor = MemoryWriter::of_caller(agent.caller, None).origin();
        let decided = decide(&memory, &self.id, decision, chosen.as_deref(), editor)?;
        Reply::json(&show(agent, decided)?)
    }
}

/// Reverts everything that a proposal wrote.
///
/// Texts that have been written since are unchanged: their changes stay `applied`, with the
/// `reason`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevertProposal {
    id: String,
}

impl Operation for RevertProposal {
    const NAME: &'static str = "revertProposal";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Proposal;
}

impl RunAtOnce for RevertProposal {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let memory = agent.memory();
        Reply::json(&show(agent, revert(&memory, &self.id)?)?)
    }
}
