//! Computes the vectors of entries that this activation has written. If the object is evicted in
//! the meantime, or the model fails, searches compute the rest: no alarm is needed.

use super::job::{Job, JobTiming, Step};
use base::background::{JobKind, SHORT_DELAY_MS};
use recall::entries::follow_writes;

pub const JOB: Job = Job {
    kind: JobKind::Vectors,
    find_due: |agent| Ok((!agent.work.vectors.is_empty()).then_some(0)),
    step: |agent, _| {
        Box::pin(async move {
            // Lets the answer be sent first.
            agent.outbound.sleep(0).await;
            let Some(_lease) = agent.work.vectors.begin() else {
                return Ok(Step::Done);
            };
            Ok(if follow_writes(&agent.memory()).await? {
                Step::More
            } else {
                Step::Done
            })
        })
    },
    timing: JobTiming::Background,
    max_steps: usize::MAX,
    pause_ms: SHORT_DELAY_MS,
    guard_ms: None,
    retry_ms: None,
};
