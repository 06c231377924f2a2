//! Continues the index build that searches have started. If it fails, the next search tries again
//! and reports the failure.

use super::job::{Job, JobTiming, Step};
use base::background::{JobKind, SHORT_DELAY_MS};
use conversation::index::build::{BATCHES_PER_WAKE, build_batch, is_unfinished};

pub const JOB: Job = Job {
    kind: JobKind::Index,
    find_due: |agent| Ok(is_unfinished(agent.db)?.then_some(0)),
    step: |agent, _| {
        Box::pin(async move {
            Ok(if build_batch(agent.db)? {
                Step::More
            } else {
                Step::Done
            })
        })
    },
    timing: JobTiming::Alarm,
    max_steps: BATCHES_PER_WAKE,
    pause_ms: SHORT_DELAY_MS,
    guard_ms: None,
    retry_ms: None,
};
