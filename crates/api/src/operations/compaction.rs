//! Operations on compaction.

use crate::json_schema::JsonSchema;
use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use access::{Effect, Needs};
use base::database::SqlText;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, Count, RawValue, nullable};
use chat::tools::rows::load_tools;
use context::compaction::act::{
    CompactionOutcome, CompactionReason, CompactionTask, Compactor, CoveredRange,
};
use context::compaction::auto;
use context::compaction::configure::{change_settings, load_settings, settings_of};
use context::compaction::estimate::Estimate;
use context::compaction::estimate::PromptOverhead;
use context::compaction::fixed::{load_fixed, read_fixed};
use context::compaction::journal::load_journal;
use context::compaction::manual::add_compaction;
use context::compaction::settings::CompactionSettings;
use context::compaction::settings::OwnSettings;
use context::compaction::summarizer::ModelSummarizer;
use conversation::log::append::FollowUp;
use conversation::log::note::get_note;
use conversation::log::tip::{StoredSettings, get_tip};
use conversation::messages::derived::delete_overlay;
use conversation::messages::tree::leaf::resolve_leaf;
use conversation::messages::tree::overlays;
use conversation::session::learn_due::{NEVER_MS, PassTrigger, due_at};
use models::ToolDefinition;
use store::learn_settings::LearnSettings;
use store::limits::PrincipalLimits;

/// Sets when and how far conversations are compacted. Omitted fields are unchanged.
///
/// With `sessionId`, the settings apply to that session; without it, to all sessions that
/// don't have their own.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigureCompaction {
    session_id: Option<Id>,
    /// The context is compacted automatically beyond this many estimated tokens. `null`:
    /// never, not even by chat turns. If it is not set, only chat turns compact, before
    /// their model's window is full.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Count>")]
    compact_after: Option<Option<Count>>,
    /// The number of the first messages that are never summarized; 3, unless set.
    protect_head: Option<Count>,
    /// The tokens of the newest messages that stay as they are; 20,000, unless set.
    tail_token_budget: Option<Count>,
    /// The minimum number of newest messages to keep, regardless of length; 2, unless set.
    min_tail_messages: Option<Count>,
}

impl Operation for ConfigureCompaction {
    const NAME: &'static str = "configureCompaction";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = CompactionSettings;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for ConfigureCompaction {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let change = self.settings()?;
        Reply::json(&change_settings(
            agent.db,
            &agent.deployed.compaction,
            self.session_id.as_ref(),
            change,
        )?)
    }
}

impl ConfigureCompaction {
    fn settings(&self) -> Result<OwnSettings> {
        let number = |count: Option<Count>| count.map(|count| count.0);
        let change = OwnSettings {
            compact_after: self.compact_after.map(number),
            protect_head: number(self.protect_head),
            tail_token_budget: number(self.tail_token_budget),
            min_tail_messages: number(self.min_tail_messages),
        };
        change.check()?;
        Ok(change)
    }

    /// The settings that are deployed for every agent, and belong to no session.
    pub fn into_agents_settings(self) -> Result<OwnSettings> {
        match self.session_id {
            None => self.settings(),
            Some(_) => Err(Error::invalid(
                "sessionId",
                "Deployed settings don't belong to a session: omit `sessionId`.",
            )),
        }
    }
}

/// Summarizes the middle of a branch now. The original messages stay in the log, and return
/// to the context when the compaction is deleted.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compact {
    session_id: Id,
    /// The end of the branch. Default: the session's leaf.
    leaf_id: Option<Id>,
    /// Only reports what a compaction would do.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactOutput {
    #[schemars(with = "Option<Compaction>")]
    compaction: Option<Box<RawValue>>,
    reason: CompactionReason,
    /// Estimated tokens of the whole context.
    tokens_before: i64,
    tokens_after: i64,
    /// The events that the summary covers, or would cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    covers: Option<CoveredRange>,
    /// The middle was too long for one compaction; the next one continues.
    has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CompactionFailure>,
}

#[derive(Serialize, JsonSchema)]
pub struct CompactionFailure {
    code: &'static str,
    message: String,
}

/// A stored summary over a range of a path.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compaction {
    pub id: Id,
    pub summary: String,
    /// The first event that the summary covers; `toId` is the last.
    pub from_id: Id,
    pub to_id: Id,
    /// Tokens of the whole context; `null` where a caller wrote the summary.
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
    pub created_at: i64,
}

impl Operation for Compact {
    const NAME: &'static str = "compact";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = CompactOutput;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

/// The part that every context of the session has in addition to its messages, and the leaf.
async fn read_overhead(
    agent: &Agent<'_>,
    session_id: &Id,
    leaf_id: Option<&Id>,
) -> Result<(PromptOverhead, Option<i64>)> {
    // A wrong leaf is rejected before blocks are read from their sources. Reading the blocks takes
    // time, so the leaf is resolved again.
    resolve_leaf(agent.db, session_id, "leafId", leaf_id)?;
    let fixed = read_fixed(&agent.memory(), session_id, &load_others(agent)?).await?;
    let leaf = resolve_leaf(agent.db, session_id, "leafId", leaf_id)?;
    Ok((fixed, leaf))
}

impl RunWaiting for Compact {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf_id = self.leaf_id.as_ref();
        let (fixed, leaf) = read_overhead(agent, &self.session_id, leaf_id).await?;
        let outcome = match (leaf, agent.compactions.try_start(&self.session_id)) {
            (None, _) => {
                CompactionOutcome::nothing(CompactionReason::NothingToCompact, fixed.with(0).total)
            }
            (Some(leaf_seq), None) => {
                let measure = agent
                    .compactions
                    .measure(agent.db, &self.session_id, leaf_seq)?;
                let messages = fixed.calibration.correct(measure.tokens);
                CompactionOutcome::nothing(
                    CompactionReason::AlreadyRunning,
                    fixed.with(messages).total,
                )
            }
            (Some(leaf_seq), Some(_lease)) => {
                let compactor = Compactor {
                    db: agent.db,
                    host: agent.host,
                    summariser: &ModelSummarizer::of(agent.memory(), agent.caller.limits()),
                };
                let task = CompactionTask {
                    session_id: &self.session_id,
                    leaf_seq,
                    settings: load_settings(
                        agent.db,
                        &agent.deployed.compaction,
                        Some(&self.session_id),
                    )?,
                    fixed,
                    is_auto: false,
                    dry_run: self.dry_run,
                    capacity: None,
                };
                compactor.compact(&task).await?
            }
        };
        Reply::json(&render(outcome)?)
    }
}

fn render(outcome: CompactionOutcome) -> Result<CompactOutput> {
    let raw = |text: SqlText| json::raw(text.into_string());
    Ok(CompactOutput {
        compaction: outcome.compaction.map(raw).transpose()?,
        reason: outcome.reason,
        tokens_before: outcome.tokens_before,
        tokens_after: outcome.tokens_after,
        covers: outcome.covers,
        has_more: outcome.has_more,
        error: outcome.error.map(|error| CompactionFailure {
            code: error.code.name(),
            message: error.into_message(),
        }),
    })
}

/// Stores your own summary over a range of a path.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddCompaction {
    session_id: Id,
    summary: String,
    /// The first message that the summary covers. `toId`, the last, is on the same path.
    from_id: Id,
    to_id: Id,
}

impl Operation for AddCompaction {
    const NAME: &'static str = "addCompaction";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Compaction;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AddCompaction {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        add_compaction(
            agent.db,
            agent.host,
            &self.session_id,
            &self.summary,
            &self.from_id,
            &self.to_id,
        )
        .map(Reply::text)
    }
}

/// Lists a session's compactions, oldest first, and why the last attempts compacted or
/// didn't.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetCompactions {
    session_id: Id,
}

#[derive(Deserialize, JsonSchema)]
pub struct CompactionList {
    pub compactions: Vec<Compaction>,
    /// The newest last.
    pub decisions: Vec<context::compaction::journal::CompactionDecision>,
}

impl Operation for GetCompactions {
    const NAME: &'static str = "getCompactions";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = CompactionList;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetCompactions {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let journal = load_journal(agent.db, &self.session_id)?;
        let compactions = overlays::load_json(agent.db, &self.session_id)?;
        let decisions = json::encode(&journal.decisions)?;
        Ok(Reply::text(format!(
            r#"{{"compactions":{compactions},"decisions":{decisions}}}"#
        )))
    }
}

/// Deletes a compaction. The messages that it covered return to the context.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteCompaction {
    session_id: Id,
    compaction_id: Id,
}

#[derive(Serialize, JsonSchema)]
pub struct DeletedCompaction {
    deleted: bool,
}

impl Operation for DeleteCompaction {
    const NAME: &'static str = "deleteCompaction";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = DeletedCompaction;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for DeleteCompaction {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (session_id, id) = (&self.session_id, &self.compaction_id);
        let deleted = delete_overlay(agent.db, agent.host, session_id, id)?;
        Reply::json(&DeletedCompaction { deleted })
    }
}

/// Estimates what a turn on a branch would send to a model, in tokens.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimateTokens {
    session_id: Id,
    /// The end of the branch. Default: the session's leaf.
    leaf_id: Option<Id>,
}

impl Operation for EstimateTokens {
    const NAME: &'static str = "estimateTokens";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Estimate;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunWaiting for EstimateTokens {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf_id = self.leaf_id.as_ref();
        let (fixed, leaf) = read_overhead(agent, &self.session_id, leaf_id).await?;
        let messages = match leaf {
            Some(leaf_seq) => {
                let compactions = agent.compactions;
                let measured = compactions.measure(agent.db, &self.session_id, leaf_seq)?;
                measured.tokens
            }
            None => 0,
        };
        Reply::json(&fixed.with(fixed.calibration.correct(messages)))
    }
}

/// The tools of a turn besides the memory tools.
fn load_others(agent: &Agent<'_>) -> Result<Vec<ToolDefinition>> {
    let tools = load_tools(agent.db, &agent.deployed.tools)?;
    Ok(tools.into_iter().map(|tool| tool.definition).collect())
}

/// What follows an append, by the settings that it read. They are parsed once.
pub struct Growth<'a> {
    agent: &'a Agent<'a>,
    due_at: OnceCell<Option<i64>>,
}

impl<'a> Growth<'a> {
    pub fn of(agent: &'a Agent<'a>) -> Self {
        Self {
            agent,
            due_at: OnceCell::new(),
        }
    }

    /// Marks the reply to an append if its session is compacted automatically, or learned from: the
    /// work that follows the answer is started only if there may be some.
    pub fn mark(&self, reply: Reply, session_id: &Id, follow_up: &FollowUp) -> Reply {
        let stored = &follow_up.settings;
        let Agent {
            background, host, ..
        } = self.agent;
        let is_scheduled = |at_ms| background.fires_by(at_ms, host.now_ms());
        // An agent that learns only when `learn` is called has no pass to schedule.
        let learns = self.find_due(stored).is_some_and(|at| at < NEVER_MS)
            && !follow_up.learn_due_at.is_some_and(is_scheduled);
        match settings_of(session_id, stored, &self.agent.deployed.compaction) {
            Ok(settings) if settings.compact_after.is_none() && !learns => reply,
            // The work that follows reports settings that can't be read.
            Ok(_) | Err(_) => reply.grown(session_id),
        }
    }

    /// When a session that grows now is due for a learning pass. `None`: the agent does not learn.
    pub fn find_due(&self, stored: &StoredSettings) -> Option<i64> {
        *self.due_at.get_or_init(|| find_due(self.agent, stored))
    }
}

fn find_due(agent: &Agent<'_>, stored: &StoredSettings) -> Option<i64> {
    let own = stored
        .learn
        .as_deref()
        .and_then(|learn| json::decode::<LearnSettings>(learn).ok());
    let deployed = || {
        let defaults = &agent.deployed.memory.config.defaults;
        defaults.learn.clone().flatten()
    };
    let learn = own.or_else(deployed).filter(|learn| !learn.is_off())?;
    Some(due_at(&learn, PassTrigger::Append, agent.host.now_ms()))
}

/// The limits of whoever caused the newest event. `None`: there are none, or the session was
/// deleted.
fn find_payer(agent: &Agent<'_>, session_id: &Id) -> Result<Option<PrincipalLimits>> {
    let leaf = match get_tip(agent.db, session_id) {
        Ok(tip) => tip.leaf,
        Err(error) if error.code == Code::SessionNotFound => None,
        Err(error) => return Err(error),
    };
    let note = leaf.map(|leaf| get_note(agent.db, session_id, leaf.seq));
    Ok(note.transpose()?.and_then(|note| note.limits))
}

/// Compacts a session that grew, if it is due. The spending counts for whoever let it grow.
pub async fn after_append(agent: &Agent<'_>, session_id: &Id) -> Result<()> {
    let find_payer = || find_payer(agent, session_id);
    let summariser = ModelSummarizer::of_growth(agent.memory(), &find_payer);
    let compactor = Compactor {
        db: agent.db,
        host: agent.host,
        summariser: &summariser,
    };
    let load_fixed = || load_fixed(&agent.memory(), session_id, &load_others(agent)?);
    let after = auto::after_append(
        agent.compactions,
        &compactor,
        &agent.deployed.compaction,
        session_id,
        &load_fixed,
    );
    let outcome = after.await;
    // A running turn reports its own phases.
    if summariser.has_started() && agent.turns.find(session_id).is_none() {
        agent.turn_context().notify_class(session_id, "idle");
    }
    match outcome?.and_then(|outcome| outcome.error) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
