//! Manual retention: runs a step of it, or reports what a step would delete.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use lifecycle::retention::{Pages, RetentionTarget, preview, step, step_in_session};
use memory::label::Label;
use store::retention::Retention;
use store::retention_progress::{LastRetentionRun, RetentionCounts};

/// Deletes some of the data that is older than the agent's `retention` allows, and returns
/// whether more is left. The agent does this automatically once a day.
///
/// With `dryRun`, nothing is deleted: the answer counts what would be deleted. A dry run
/// reads at most 20,000 rows; beyond them, `complete` is `false` and the counts are
/// minimums. It can be limited to a session or a block, and can try rules that are not set.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyRetention {
    #[serde(default)]
    dry_run: bool,
    /// Only this session. Without `dryRun`, its old parts are deleted in one or more calls:
    /// the next one continues at the answer's `cursor`. Pinned sessions are not changed.
    session_id: Option<Id>,
    /// With `dryRun`: only this block, of the session or else of the agent.
    label: Option<Label>,
    /// Rules for this call, instead of the stored ones. Without `dryRun`, this requires a
    /// session.
    retention: Option<Retention>,
    /// From the previous call, with `sessionId`.
    cursor: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionApplied {
    dry_run: bool,
    /// The counts of items that this step deleted, or would delete.
    gone: RetentionCounts,
    /// Whether everything was covered. If not, another call continues; the counts of a dry
    /// run are then minimums.
    complete: bool,
    /// With `sessionId`: where the next call continues. `null`: everything was covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    cursor: Option<String>,
    /// The last completed run.
    last_run: Option<LastRetentionRun>,
    /// The time of the next automatic run; `null`: no rule is set.
    next_run_at: Option<i64>,
}

impl Operation for ApplyRetention {
    const NAME: &'static str = "applyRetention";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = RetentionApplied;
}

impl RunAtOnce for ApplyRetention {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        self.check()?;
        let memory = agent.memory();
        let target = RetentionTarget {
            session_id: self.session_id,
            label: self.label,
            rules: self.retention,
        };
        if self.dry_run {
            let found = preview(&memory, &target)?;
            return Reply::json(&RetentionApplied {
                dry_run: true,
                gone: found.counts,
                complete: found.is_complete,
                cursor: None,
                last_run: found.last,
                next_run_at: found.next_at,
            });
        }
        if target.session_id.is_some() {
            let step = step_in_session(&memory, &target, self.cursor.as_deref())?;
            agent.work.pages.add(&step.left);
            for session_id in &step.changed {
                agent.background.show(session_id);
            }
            let reply = Reply::json(&RetentionApplied {
                dry_run: false,
                gone: step.counts,
                complete: step.cursor.is_none(),
                cursor: step.cursor,
                last_run: None,
                next_run_at: None,
            })?;
            return Ok(reply.purged(step.left));
        }
        let step = step(&memory, Pages::ClearedAfter)?;
        agent.work.pages.add(&step.left);
        for session_id in &step.changed {
            agent.background.show(session_id);
        }
        agent.schedule_retention(step.has_more);
        let reply = Reply::json(&RetentionApplied {
            dry_run: false,
            gone: step.counts,
            complete: !step.has_more,
            cursor: None,
            last_run: step.last,
            next_run_at: step.next_at,
        })?;
        Ok(reply.purged(step.left))
    }
}

impl ApplyRetention {
    /// Deletions by rules that are not stored require a session. Otherwise a wrong number
    /// of days could delete a whole agent.
    fn check(&self) -> Result<()> {
        let (field, sentence) = match self {
            Self {
                dry_run: false,
                label: Some(_),
                ..
            } => (
                "label",
                "`label` requires `dryRun`: retention itself runs on a session or on the whole agent.",
            ),
            Self {
                dry_run: false,
                session_id: None,
                retention: Some(_),
                ..
            } => (
                "retention",
                "Rules for one call require `dryRun` or a `sessionId`. To set them for the agent, \
                 use `configureAgent`.",
            ),
            Self {
                cursor: Some(_),
                dry_run,
                session_id,
                ..
            } if *dry_run || session_id.is_none() => (
                "cursor",
                "`cursor` requires `sessionId`, and can't be combined with `dryRun`.",
            ),
            _ => return Ok(()),
        };
        Err(Error::invalid(field, sentence))
    }
}
