//! Learns from conversations, and consolidates what was learned (`learning/rounds.rs`).

use super::job::{Job, JobTiming, Step};
use base::background::{CHECK_AFTER_MS, JobKind};
use learning::rounds::{find_due_time, learn_if_due};

pub const JOB: Job = Job {
    kind: JobKind::Learning,
    find_due: |agent| find_due_time(&agent.memory()),
    step: |agent, _| {
        Box::pin(async move {
            let round = learn_if_due(&agent.memory(), &agent.work.learning).await;
            // The pass may have written entries.
            if !agent.work.vectors.is_empty() {
                agent.background.start(JobKind::Vectors);
            }
            let round = round?;
            for failure in &round.failures {
                agent.background.log(failure);
            }
            Ok(round.next_at.map_or(Step::Done, Step::At))
        })
    },
    timing: JobTiming::Background,
    max_steps: 1,
    pause_ms: CHECK_AFTER_MS,
    guard_ms: Some(CHECK_AFTER_MS),
    retry_ms: None,
};
