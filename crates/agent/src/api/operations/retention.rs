//! Retention by hand: a step of it, or what it would do.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs};
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::base::error::Result;
use crate::lifecycle::retention::{Pages, preview, step};
use crate::store::retention_progress::{LastRetentionRun, RetentionCounts};

/// Deletes some of what is older than the agent's `retention` says, and says whether more
/// is left. The agent does the same by itself, once a day.
///
/// With `dryRun`, nothing is deleted: the answer counts what would go. A dry run looks at
/// 20,000 rows at most; beyond them, `complete` is `false` and the counts are the least.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyRetention {
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct RetentionApplied {
    dry_run: bool,
    /// What this step deleted, or what would be deleted.
    gone: RetentionCounts,
    /// Whether all was looked at. If not, another call goes on; of a dry run, the counts are
    /// the least.
    complete: bool,
    /// The last run that came to its end.
    last_run: Option<LastRetentionRun>,
    /// When the next run begins by itself; `null`: no rule is set.
    next_run_at: Option<i64>,
}

impl Operation for ApplyRetention {
    const NAME: &'static str = "applyRetention";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(test)]
    type Output = RetentionApplied;
}

impl RunAtOnce for ApplyRetention {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let memory = agent.memory();
        if self.dry_run {
            let found = preview(&memory)?;
            return Reply::json(&RetentionApplied {
                dry_run: true,
                gone: found.counts,
                complete: found.is_complete,
                last_run: found.last,
                next_run_at: found.next_at,
            });
        }
        let step = step(&memory, Pages::ClearedAfter)?;
        for session_id in &step.changed {
            agent.starter.show(session_id);
        }
        agent.keep_soon(step.has_more);
        let reply = Reply::json(&RetentionApplied {
            dry_run: false,
            gone: step.gone,
            complete: !step.has_more,
            last_run: step.last,
            next_run_at: step.next_at,
        })?;
        Ok(reply.purged(step.purged))
    }
}
