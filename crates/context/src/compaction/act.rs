//! Compacts a conversation: decides which messages to cover, has them summarized, and writes the
//! overlay if the summarized part of the log is still the same.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boundary::PathUnit;
use super::journal::{CompactionDecision, change_journal, record_failure};
pub use super::plan::CompactionTask;
use super::plan::{CompactionPlan, PlannedUnits, SUMMARY_SHARE, part_tokens, plan_units};
use super::summary::{check, render_conversation, render_prompt, summary_tokens};
use crate::working_context::message::{from_overlay, from_row};
use crate::working_context::truncate::cut_middle;
use base::database::{Database, SqlText, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::outbound::LocalBoxFuture;
use base::tokens;
use conversation::log::event_facts::find_id;
use conversation::log::tip::get_tip;
use conversation::messages::delete::record_boundaries;
use conversation::messages::history::{PathItem, WalkStart, walk_items};
use conversation::messages::tree::overlay_writes::{self, AddedOverlay, NewOverlay};
use conversation::messages::tree::overlays::{self, EventRange};
use conversation::messages::tree::path::WalkStep;
use conversation::session::changes::{self, ChangeType, LogState};
use conversation::session::usage::{UsageIncrease, count_usage};
use memory::BlockScope;
use memory::block::Block;
use memory::frozen::refreeze;
use models::TokenUsage;
use models::length::LengthRefusal;
use models::message::ContextMessage;

const CHARS_PER_TOKEN: i64 = 4;

/// How often a part is sent to a model that refuses it for its length, half as long each
/// time.
const MAX_TRIES: u32 = 3;

/// How many older overlays are stored under a wider one. They return when the wider overlay is
/// deleted.
const MAX_NESTED: i64 = 20;

/// The trait of everything that writes summaries.
pub trait Summarizer {
    fn summarize<'a>(&'a self, prompt: String, max_tokens: i64) -> LocalBoxFuture<'a, NewSummary>;

    /// Is called when a compaction after an append begins.
    fn notify_started(&self, _session_id: &Id) {}

    /// Is called with the outcome of a compaction that was not a dry run.
    fn notify(&self, _session_id: &Id, _outcome: &CompactionOutcome) {}

    /// Whether the session's prompt is refreshed with the compaction.
    fn refreshes_prompt(&self, _session_id: &Id) -> Result<bool> {
        Ok(false)
    }

    /// The blocks of the session's prompt.
    fn read_prompt<'a>(&'a self, _session_id: &'a Id) -> LocalBoxFuture<'a, Result<Vec<Block>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A summary, or the error, and the cost of the request in either case.
pub struct NewSummary {
    pub summary: Result<String>,
    pub usage: TokenUsage,
    /// By the agent's prices.
    pub cost: f64,
    /// The model that was called; `None`: none was.
    pub model: Option<String>,
}

pub struct Compactor<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub summariser: &'a dyn Summarizer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// The overlay was written.
    Compacted,
    /// A dry run: a real run would write an overlay.
    WouldCompact,
    /// The conversation has only a protected head and tail.
    NothingToCompact,
    /// Another compaction of this session is running.
    AlreadyRunning,
    /// The summarized events changed during the compaction, so nothing was written.
    ChangedMeanwhile,
    /// The model failed, so nothing was written; `error` is the reason.
    SummariserFailed,
}

impl CompactionReason {
    pub fn name(self) -> &'static str {
        match self {
            CompactionReason::Compacted => "compacted",
            CompactionReason::WouldCompact => "would_compact",
            CompactionReason::NothingToCompact => "nothing_to_compact",
            CompactionReason::AlreadyRunning => "already_running",
            CompactionReason::ChangedMeanwhile => "changed_meanwhile",
            CompactionReason::SummariserFailed => "summariser_failed",
        }
    }
}

pub struct CompactionOutcome {
    pub reason: CompactionReason,
    /// The overlay's JSON.
    pub compaction: Option<SqlText>,
    pub covers: Option<CoveredRange>,
    pub tokens_before: i64,
    pub tokens_after: i64,
    pub error: Option<Error>,
    /// Whether part of the middle is left for the next compaction.
    pub has_more: bool,
}

/// The covered events, given by the ids of the first and the last.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoveredRange {
    pub from_id: String,
    pub to_id: String,
    pub messages: usize,
}

impl CompactionOutcome {
    pub fn nothing(reason: CompactionReason, tokens: i64) -> Self {
        Self {
            reason,
            compaction: None,
            covers: None,
            tokens_before: tokens,
            tokens_after: tokens,
            error: None,
            has_more: false,
        }
    }
}

/// The rows that a compaction writes in one transaction.
struct CompactionWrite<'a> {
    overlay: NewOverlay<'a>,
    /// The blocks of the prompt that is frozen with it.
    prompt: Option<Vec<Block>>,
    decision: CompactionDecision,
}

impl Compactor<'_> {
    pub async fn compact(&self, task: &CompactionTask<'_>) -> Result<CompactionOutcome> {
        let outcome = self.run(task).await?;
        if !task.dry_run {
            self.summariser.notify(task.session_id, &outcome);
        }
        Ok(outcome)
    }

    async fn run(&self, task: &CompactionTask<'_>) -> Result<CompactionOutcome> {
        let PlannedUnits {
            units,
            plan,
            messages,
        } = plan_units(self.db, task)?;
        let before = task.fixed.with(messages).total;
        let Some(plan) = plan else {
            return Ok(CompactionOutcome::nothing(
                CompactionReason::NothingToCompact,
                before,
            ));
        };
        let (from_id, to_id) = self.get_edges(task.session_id, plan.range)?;
        let mut outcome = CompactionOutcome {
            covers: Some(CoveredRange {
                from_id: from_id.clone(),
                to_id: to_id.clone(),
                messages: plan.covered_units,
            }),
            tokens_after: before - plan.covered_tokens + summary_tokens(plan.covered_tokens),
            has_more: plan.has_more,
            ..CompactionOutcome::nothing(CompactionReason::WouldCompact, before)
        };
        if task.dry_run {
            return Ok(outcome);
        }
        let seen = LogState::load(self.db, task.session_id)?;
        // Checked first, before a request costs anything.
        let capacity = overlay_writes::check_capacity(self.db, task.session_id);
        let mut used = UsageIncrease::default();
        let summary = match capacity {
            Ok(()) => self.summarize(task, &units, &plan, seen, &mut used).await,
            Err(error) => Err(error),
        };
        let summary = match summary {
            Ok(Some(summary)) => summary,
            Ok(None) => {
                self.count_now(task.session_id, &mut used)?;
                outcome.reason = CompactionReason::ChangedMeanwhile;
                outcome.tokens_after = before;
                return Ok(outcome);
            }
            Err(error) => {
                outcome.reason = CompactionReason::SummariserFailed;
                outcome.tokens_after = before;
                let decision = self.decision(task, &outcome);
                self.record_failure(task, &error, decision, &used)?;
                outcome.error = Some(error);
                return Ok(outcome);
            }
        };
        outcome.tokens_after = before - plan.covered_tokens
            + task.fixed.calibration.correct(tokens::estimate(&summary));
        outcome.reason = CompactionReason::Compacted;
        let new = NewOverlay {
            range: plan.range,
            from_id: &from_id,
            to_id: &to_id,
            summary: &summary,
            tokens_before: Some(before),
            tokens_after: Some(outcome.tokens_after),
        };
        let decision = self.decision(task, &outcome);
        // If a backend fails, only its block's content is missing.
        let prompt = if self.summariser.refreshes_prompt(task.session_id)? {
            self.count_now(task.session_id, &mut used)?;
            Some(self.summariser.read_prompt(task.session_id).await?)
        } else {
            None
        };
        let new = CompactionWrite {
            overlay: new,
            prompt,
            decision,
        };
        outcome.compaction = self.write(task, new, seen, &used)?;
        if outcome.compaction.is_none() {
            outcome.reason = CompactionReason::ChangedMeanwhile;
            outcome.tokens_after = before;
        }
        Ok(outcome)
    }

    /// Sends one request per part, with the summary of the parts before. `None`: an event was
    /// changed during a request, so the positions of the other parts are no longer valid.
    async fn summarize(
        &self,
        task: &CompactionTask<'_>,
        units: &[PathUnit],
        plan: &CompactionPlan,
        seen: LogState,
        used: &mut UsageIncrease,
    ) -> Result<Option<String>> {
        let mut summary = plan.previous.clone();
        for (index, part) in plan.parts.iter().enumerate() {
            if index > 0 {
                self.count_now(task.session_id, used)?;
                if LogState::load(self.db, task.session_id)? != seen {
                    return Ok(None);
                }
            }
            let Some(part) = units.get(part.clone()) else {
                continue;
            };
            let mut conversation = self.render_part(task.session_id, part)?;
            let mut tokens = summary_tokens(plan.covered_tokens);
            if let Some(capacity) = task.capacity {
                tokens = tokens.min(capacity / SUMMARY_SHARE);
                cut(&mut conversation, part_tokens(capacity) * CHARS_PER_TOKEN);
                if let Some(summary) = &mut summary {
                    cut(summary, capacity / SUMMARY_SHARE * CHARS_PER_TOKEN);
                }
            }
            let mut tries = 0;
            let answer = loop {
                let prompt = render_prompt(summary.as_deref(), &conversation, tokens);
                // Twice the intended length: a cut-off summary is worse than a long one.
                let answer = self.summariser.summarize(prompt, tokens * 2).await;
                let refusal = answer.summary.as_ref().err().and_then(LengthRefusal::of);
                tries += 1;
                if refusal.is_none() || tries == MAX_TRIES {
                    break answer;
                }
                if LogState::load(self.db, task.session_id)? != seen {
                    return Ok(None);
                }
                let half = conversation.chars().count() as i64 / 2;
                cut(&mut conversation, half);
            };
            used.input_tokens += answer.usage.input_tokens;
            used.output_tokens += answer.usage.output_tokens;
            used.cached_input_tokens += answer.usage.cached_input_tokens;
            used.cost += answer.cost;
            if answer.usage != TokenUsage::default() {
                used.model = answer.model;
            }
            summary = Some(check(&answer.summary?)?);
        }
        let summary = summary.ok_or_else(|| Error::storage("a compaction of nothing"))?;
        Ok(Some(summary))
    }

    fn render_part(&self, session_id: &Id, part: &[PathUnit]) -> Result<String> {
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            return Ok(String::new());
        };
        let above_seq = first.range.above_seq;
        let mut newest_first: Vec<Vec<ContextMessage>> = Vec::new();
        let start = WalkStart::At(last.range.to_seq);
        walk_items(self.db, session_id, start, 64, &mut |item| {
            let (seq, messages) = match &item {
                PathItem::Event(row) => (row.parent_seq, from_row(row)?),
                PathItem::Summary(overlay) => {
                    (overlay.range.above_seq, vec![from_overlay(overlay)])
                }
            };
            newest_first.push(messages);
            Ok(if seq == above_seq {
                WalkStep::Stop
            } else {
                WalkStep::On
            })
        })?;
        let messages: Vec<ContextMessage> = newest_first.into_iter().rev().flatten().collect();
        Ok(render_conversation(&messages))
    }

    fn decision(
        &self,
        task: &CompactionTask<'_>,
        outcome: &CompactionOutcome,
    ) -> CompactionDecision {
        CompactionDecision {
            at: self.host.now_ms(),
            is_auto: task.is_auto,
            reason: outcome.reason.name().to_owned(),
            tokens_before: outcome.tokens_before,
            tokens_after: outcome.tokens_after,
        }
    }

    /// Records the failure, unless the session was deleted in the meantime.
    fn record_failure(
        &self,
        task: &CompactionTask<'_>,
        error: &Error,
        decision: CompactionDecision,
        used: &UsageIncrease,
    ) -> Result<()> {
        atomically(self.db, || {
            let seq = get_tip(self.db, task.session_id)?.newest_seq;
            self.count(task.session_id, used)?;
            record_failure(self.db, self.host, task.session_id, seq, error, decision)
        })
    }

    /// `None`: an event that the summary covers was changed in the meantime.
    fn write(
        &self,
        task: &CompactionTask<'_>,
        new: CompactionWrite<'_>,
        seen: LogState,
        used: &UsageIncrease,
    ) -> Result<Option<SqlText>> {
        let session_id = task.session_id;
        let CompactionWrite {
            overlay: new,
            prompt,
            decision,
        } = new;
        atomically(self.db, || {
            let tip = get_tip(self.db, session_id)?;
            // The tokens are spent, whether or not the overlay is written.
            self.count(session_id, used)?;
            let edges = self.find_edges(session_id, new.range)?;
            let is_same = edges.is_some_and(|(from, to)| from == new.from_id && to == new.to_id);
            if !is_same || LogState::load(self.db, session_id)? != seen {
                return Ok(None);
            }
            let AddedOverlay {
                id,
                pruned,
                changed: split,
            } = overlay_writes::insert(self.db, self.host, session_id, &new, Some(MAX_NESTED))?;
            if let Some(blocks) = &prompt {
                refreeze(self.db, self.host, BlockScope::Session(session_id), blocks)?;
            }
            let changed: Vec<Option<&str>> = pruned
                .iter()
                .map(String::as_str)
                .chain([id.as_str()])
                .map(Some)
                .collect();
            changes::record(
                self.db,
                self.host,
                session_id,
                tip.last_seq(),
                ChangeType::Compaction,
                &changed,
            )?;
            record_boundaries(self.db, self.host, session_id, tip.last_seq(), &split)?;
            change_journal(self.db, session_id, |journal| {
                // The summary frees capacity, so the window may begin with the branch again.
                if let Some(window) = &mut journal.window {
                    window.from_seq = 0;
                }
                journal.last_error = None;
                journal.decisions.push(decision);
            })?;
            overlays::get_json(self.db, session_id, &id).map(Some)
        })
    }

    /// Counts the spending so far, before a wait during which the object may die.
    fn count_now(&self, session_id: &Id, used: &mut UsageIncrease) -> Result<()> {
        let spent = std::mem::take(used);
        atomically(self.db, || self.count(session_id, &spent))
    }

    fn count(&self, session_id: &Id, used: &UsageIncrease) -> Result<()> {
        if *used == UsageIncrease::default() {
            Ok(())
        } else {
            count_usage(self.db, self.host, session_id, used)
        }
    }

    fn get_edges(&self, session_id: &Id, range: EventRange) -> Result<(String, String)> {
        self.find_edges(session_id, range)?
            .ok_or_else(|| Error::storage("an event at a compaction's edge is missing"))
    }

    /// The ids of a range's first and last event, if both events exist.
    fn find_edges(&self, session_id: &Id, range: EventRange) -> Result<Option<(String, String)>> {
        let find = |seq| find_id(self.db, session_id, seq);
        Ok(find(range.from_seq)?.zip(find(range.to_seq)?))
    }
}

fn cut(text: &mut String, chars: i64) {
    if let Some(cut) = cut_middle(text, usize::try_from(chars).unwrap_or(0)) {
        *text = cut;
    }
}
